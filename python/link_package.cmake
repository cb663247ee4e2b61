# Links every Python file of FROM into TO.
file(MAKE_DIRECTORY ${TO})
file(GLOB files RELATIVE ${FROM} ${FROM}/*.py ${FROM}/*.pyi ${FROM}/py.typed)
foreach(file IN LISTS files)
  file(CREATE_LINK ${FROM}/${file} ${TO}/${file} SYMBOLIC)
endforeach()
