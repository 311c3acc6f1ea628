// A library that NVTX loads as it loads Nsight's: it writes what is pushed and popped into the file that TAKEN names,
// a line each: the thread, "push" and the name, or "pop". By NVTX's published table of callbacks, version 3.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kTableCallbacks = 1 };                                       // of export tables
enum { kModuleCore = 1, kModuleCore2 = 5 };                         // of callbacks
enum { kPushEx = 8, kPushA = 9, kPop = 11 };                        // of the module core
enum { kDomainPushEx = 4, kDomainPop = 5, kRegisterStringA = 10 };  // of the module core2
enum { kIsText = 1, kIsRegistered = 3 };                            // of messages

typedef void (*Function)(void);

typedef struct {
  size_t size;
  int (*functions)(int module, Function*** table, unsigned* count);
} Callbacks;

typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const char* message;
} Event;

static void Take(const char* what, const char* name) {
  FILE* file = fopen(getenv("TAKEN"), "a");
  if (file == NULL) return;
  fprintf(file, "%ld %s%s\n", syscall(SYS_gettid), what, name);
  fclose(file);
}

static int Push(const char* name) {
  Take("push ", name);
  return 0;
}

static const char* Name(const Event* event) {
  const int is_known = event->message_type == kIsText || event->message_type == kIsRegistered;
  return is_known && event->message != NULL ? event->message : "?";
}

static int PushEx(const Event* event) { return Push(Name(event)); }

static int DomainPushEx(void* domain, const Event* event) {
  (void)domain;
  return Push(Name(event));
}

static int Pop(void) {
  Take("pop", "");
  return 0;
}

static int DomainPop(void* domain) {
  (void)domain;
  return Pop();
}

static char* RegisterString(void* domain, const char* text) {
  (void)domain;
  return strdup(text);
}

int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t));

int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t)) {
  const Callbacks* callbacks = export_table(kTableCallbacks);
  Function **core = NULL, **core2 = NULL;
  unsigned core_count = 0, core2_count = 0;
  if (callbacks == NULL || !callbacks->functions(kModuleCore, &core, &core_count) ||
      !callbacks->functions(kModuleCore2, &core2, &core2_count) || core_count <= kPop ||
      core2_count <= kRegisterStringA) {
    return 0;
  }
  *core[kPushEx] = (Function)PushEx;
  *core[kPushA] = (Function)Push;
  *core[kPop] = (Function)Pop;
  *core2[kDomainPushEx] = (Function)DomainPushEx;
  *core2[kDomainPop] = (Function)DomainPop;
  *core2[kRegisterStringA] = (Function)RegisterString;
  return 1;
}
