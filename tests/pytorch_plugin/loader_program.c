/* Opens the libraries named on the command line, asks for the CUDA devices twice, prints the count. */
#include <dlfcn.h>
#include <stdio.h>

int cudaGetDeviceCount(int* count);

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (dlopen(argv[i], RTLD_NOW) == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 9;
    }
  }
  int count = -1;
  cudaGetDeviceCount(&count);
  cudaGetDeviceCount(&count);
  printf("devices=%d\n", count);
  return 0;
}
