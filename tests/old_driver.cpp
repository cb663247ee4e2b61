// A libcuda.so.1 of long ago: it answers for its version and knows nothing else.
extern "C" {

int cuInit(unsigned) {
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
}
