// A very old libcuda.so.1: it reports its version and has no other function.
extern "C" {

int cuInit(unsigned) {
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
}
