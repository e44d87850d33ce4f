/* An external delegate: it takes the graph's first operators, as many as it is told to, and then
   answers nothing in their place. It leaves a file behind when it is asked.

   Laid out as in TensorFlow Lite's core/c/common.h; only what is used is named. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int size; int data[16]; } IntArray;

typedef struct {
  void *(*init)(void *context, const char *buffer, size_t length);
  void (*free)(void *context, void *buffer);
  int (*prepare)(void *context, void *node);
  int (*invoke)(void *context, void *node);
  const char *(*profiling_string)(const void *context, const void *node);
  int32_t builtin_code;
  const char *custom_name;
  int version;
  void *others[16];
} Registration;

typedef struct Delegate Delegate;

typedef struct Context {
  size_t tensors_size;
  int (*get_execution_plan)(struct Context *context, IntArray **plan);
  void *tensors;
  void *impl;
  void *resize_tensor, *report_error, *add_tensors, *get_node_and_registration;
  int (*replace_nodes)(struct Context *context, Registration kernel, const IntArray *nodes,
                       Delegate *delegate);
} Context;

struct Delegate {
  void *data;
  int (*prepare)(Context *context, Delegate *delegate);
  void *copy_from, *copy_to, *free_handle;
  int64_t flags;
  void *opaque_builder;
  void *others[8];
};

static int take;
static char mark[4096];

static int answer_nothing(void *context, void *node) { return 0; }

static int prepare(Context *context, Delegate *delegate) {
  FILE *file = fopen(mark, "w");
  if (file == NULL) return 1;
  fclose(file);
  if (take == 0) return 0;
  IntArray nodes = {take, {0}};
  for (int i = 0; i < take; i++) nodes.data[i] = i;
  Registration kernel = {0};
  kernel.prepare = answer_nothing;
  kernel.invoke = answer_nothing;
  kernel.custom_name = "Nothing";
  kernel.version = 1;
  return context->replace_nodes(context, kernel, &nodes, delegate);
}

Delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t count,
                                        void (*report_error)(const char *)) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(keys[i], "take") == 0) take = atoi(values[i]);
    if (strcmp(keys[i], "mark") == 0) snprintf(mark, sizeof mark, "%s", values[i]);
  }
  Delegate *delegate = calloc(1, sizeof *delegate);
  delegate->prepare = prepare;
  delegate->flags = 1; /* tensors of a dynamic shape do not put it off */
  return delegate;
}

void tflite_plugin_destroy_delegate(Delegate *delegate) { free(delegate); }
