"""Rows of tokens for training: complete documents packed into rows of one length, in another order each epoch."""

import numpy as np

IGNORE = -100


class Source:
    """An endless supply of packed rows from one kind of text. Every row begins where a document (or a window of a
    long one) begins, since that is how text begins when the model is used."""

    def __init__(self, tokens, borders, length, rng):
        self.tokens, self.borders, self.length, self.rng = tokens, borders, length, rng
        self.rows, self.epochs = iter(()), 0

    def pieces(self):
        for d in self.rng.permutation(len(self.borders) - 1):
            begin, end = self.borders[d], self.borders[d + 1]
            if end - begin > self.length:
                first = begin + self.rng.integers(self.length // 2, self.length)
                yield begin, first
                yield from ((b, min(b + self.length, end)) for b in range(first, end, self.length))
            else:
                yield begin, end

    def packed(self, open_rows=24):
        """First fit into a few open rows; the fullest is closed if a piece fits in none."""
        rows = []
        for piece in self.pieces():
            size = piece[1] - piece[0]
            row = next((r for r in rows if r[0] + size <= self.length), None)
            if row is None:
                if len(rows) == open_rows:
                    yield rows.pop(max(range(open_rows), key=lambda i: rows[i][0]))
                row = [0]
                rows.append(row)
            row[0] += size
            row.append(piece)
        yield from rows

    def row(self):
        item = next(self.rows, None)
        if item is None:
            self.epochs += 1
            self.rows = self.packed()
            item = next(self.rows)
        return np.concatenate([self.tokens[b:e] for b, e in item[1:]])


class Mixture:
    """Batches of rows drawn from sources by weights that change with the progress of training."""

    def __init__(self, arrays, length, seed):
        self.rng = np.random.default_rng(seed)
        self.length = length
        self.sources = {
            n: Source(arrays[n], arrays[n + "_borders"], length, self.rng)
            for n in arrays.files
            if n + "_borders" in arrays.files and n != "valid"
        }

    def batch(self, rows, weights):
        names = list(weights)
        share = np.array([weights[n] for n in names])
        chosen = self.rng.choice(len(names), size=rows, p=share / share.sum())
        return framed([self.sources[names[c]].row() for c in chosen], self.length)


def framed(rows, length):
    """Ids and next-token labels [rows, length]; positions after a row's end are ignored."""
    ids = np.zeros((len(rows), length), np.int64)
    labels = np.full((len(rows), length), IGNORE, np.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
        labels[i, : len(row) - 1] = row[1:]
    return ids, labels


def valid_batches(arrays, length, rows):
    """Each held-out document alone from its first token; a document longer than the row continues in another row."""
    tokens, borders = arrays["valid"], arrays["valid_borders"]
    pieces = [
        tokens[b : min(b + length, e)] for b0, e in zip(borders, borders[1:]) for b in range(b0, e, length)
    ]
    pieces = [p for p in pieces if len(p) > 1]
    pieces += [pieces[-1][:1]] * (-len(pieces) % rows)
    return [framed(pieces[i : i + rows], length) for i in range(0, len(pieces), rows)]
