#!/usr/bin/env python3
"""Models by name: searching, listing and removing.

    models_test.py SLUICE FOLDER_OF_TINY_MODELS
"""

import json
import shutil
import unittest

from harness import MODELS, CommandTest, environment


class Models(CommandTest):
    def setUp(self):
        super().setUp()
        home = self.folder / "home"
        self.own = home / ".local/share/sluice/models"
        self.hub = home / ".cache/huggingface/hub"
        self.shared = self.folder / "shared"
        self.environment = environment(HOME=str(home), SLUICE_MODELS=f"/no/such/folder:{self.shared}")
        for name in ("XDG_DATA_HOME", "HF_HOME", "HF_HUB_CACHE"):
            self.environment.pop(name, None)
        self.put("qwen3_moe", self.own / "mine")
        self.put("qwen3_next", self.shared / "Owner/theirs")
        repository = self.hub / "models--Qwen--Tiny-3.5"
        self.put("qwen3_moe", repository / "snapshots/0ld")
        self.put("deepseek_v3", repository / "snapshots/aaa")
        (repository / "refs").mkdir()
        (repository / "refs/main").write_text("aaa\n")

    def put(self, model, folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(MODELS / model, folder)

    def names(self):
        listed = json.loads(self.run_well("list", "--json", env=self.environment))
        return {model["name"]: (model["place"], model["architecture"]) for model in listed}

    def test_every_place_is_looked_into(self):
        self.assertEqual(self.names(), {
            "mine": ("folder", "qwen3_moe"),
            "Owner/theirs": ("folder", "qwen3_next"),
            "Qwen/Tiny-3.5": ("hub", "deepseek_v3"),
            "delta-story": ("bundled", "qwen3_5_moe"),
            "latent-story": ("bundled", "deepseek_v3"),
        })
        for name, architecture in {"mine": "qwen3_moe", "Owner/theirs": "qwen3_next", "Qwen/Tiny-3.5": "deepseek_v3",
                                   str(self.own / "mine"): "qwen3_moe"}.items():
            model = json.loads(self.run_well("inspect", name, "--json", env=self.environment))
            self.assertEqual(model["architecture"], architecture)
        self.expect_error("inspect", "Qwen/Other", env=self.environment, says=["'Qwen/Other'", "sluice list"])

    def test_gguf_is_named(self):
        folder = self.folder / "theirs"
        folder.mkdir()
        (folder / "model.gguf").write_bytes(b"GGUF")
        for name in (folder, folder / "model.gguf", "model.gguf"):
            self.expect_error("run", "-m", name, env=self.environment, says=["GGUF", "not supported"])

    def test_the_first_place_wins(self):
        self.put("qwen3_next", self.shared / "mine")
        self.assertEqual(self.names()["mine"], ("folder", "qwen3_next"))

    def test_only_models_of_ones_own_are_removed(self):
        for name in ("delta-story", "Qwen/Tiny-3.5", "Owner/theirs", "..", "/", "mine/.."):
            self.expect_error("rm", name, env=self.environment, says=[name])
        self.run_well("rm", "mine", env=self.environment)
        self.assertNotIn("mine", self.names())
        self.assertEqual(list(self.own.iterdir()), [])
        self.assertEqual(len(self.names()), 4)


if __name__ == "__main__":
    unittest.main()
