/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_source_check: a shader that is not trusted cannot name files beside those of the given folders, whatever way it is written; and
 * what looks like it but is text, a comment or another word stays allowed. Needs a clang (OPENMPS_CLANG).
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "shader/process.h"
#include "shader/source_check.h"
#include "host_device.h"

static void check_refused(const char *source, const char *place, const char *words) {
  mps_status status = mps_source_check(source, "s");
  if (status != MPS_STATUS_COMPILE_ERROR || strncmp(mps_error_message(), place, strlen(place)) != 0 || !strstr(mps_error_message(), words)) {
    test_failures++;
    fprintf(stderr, "%s\n  gives %s: %s\n  expected %s ... %s\n", source, mps_status_name(status), mps_error_message(), place, words);
  }
}

static void check_allowed(const char *source) {
  if (mps_source_check(source, "s") == MPS_STATUS_OK) return;
  test_failures++;
  fprintf(stderr, "%s\n  is refused: %s\n", source, mps_error_message());
}

static const char outside[] = "error: a shader includes files of the given folders only";
static const char computed[] = "error: expected \"FILENAME\" or <FILENAME>, written out";

static void refuses_files_elsewhere(void) {
  check_refused("#include \"/etc/passwd\"\n", "s:1:10: ", outside);
  check_refused("int a;\n  # include </etc/passwd>", "s:2:13: ", outside);
  check_refused("#include \"../../x\"\n", "s:1:10: ", outside);
  check_refused("#include <a/../../x>\n", "s:1:10: ", outside);
  check_refused("#include <a/..>\n", "s:1:10: ", outside);
  check_refused("#include \"a\\..\\x\"\n", "s:1:10: ", outside);
  check_refused("#import \"/etc/passwd\"\n", "s:1:9: ", outside);
  check_refused("#include_next </etc/passwd>\n", "s:1:15: ", outside);
  check_refused("%:include \"/etc/passwd\"\n", "s:1:11: ", outside);
  check_refused("/* a\n b */ # /* c */ include /* d */ \"/etc/passwd\"\n", "s:2:", outside);
  check_refused("#inc\\\nlude \"/etc/passwd\"\n", "s:2:6: ", outside);
  check_refused("#\\  \n\\\ninclude \"/etc\\\n/passwd\"\n", "s:3:9: ", outside);
  check_refused("// joined \\\n comment\n#include \"/etc/passwd\"\n", "s:3:10: ", outside);
  check_refused("int c = 'a';\n'\n#include \"/etc/passwd\"\n", "s:3:10: ", outside);
  check_refused("int n = 1'000;\n#include \"/etc/passwd\"\n", "s:2:10: ", outside);
  check_refused("#if 0\ndon't\n#endif\n#include \"/etc/passwd\"\n", "s:4:10: ", outside);
  check_refused("auto t = R\"x(\")\" )x\";\n#include \"/etc/passwd\"\n", "s:2:10: ", outside);
  check_refused("auto t = fR\"x(\"; // (\n#include \"/etc/passwd\"\n", "s:2:10: ", outside);
  check_refused("auto t = \"\\\"\" \"//\" \"/*\";\n#include \"/etc/passwd\"\n", "s:2:10: ", outside);
  check_refused("auto t = R\"a b(\";\n", "s:1:12: ", "error: invalid delimiter of a raw string");
  check_refused("#define F \"/etc/passwd\"\n#include F\n", "s:2:10: ", computed);
  check_refused("#include\n", "s:1:9: ", computed);
  check_refused("#include <x\n", "s:1:10: ", "error: expected \"FILENAME\" or <FILENAME>");
}

static void refuses_questions_about_files(void) {
  check_refused("#if __has_include(\"/etc/passwd\")\n#endif\n", "s:1:19: ", outside);
  check_refused("#if 1 && __has_include_next (<../x>)\n#endif\n", "s:1:30: ", outside);
  check_refused("#define H __has_include\n", "s:1:11: ", "error: expected a file in parentheses");
  check_refused("#define H(x) __has_include(x)\n", "s:1:28: ", computed);
  check_refused("#if __has_embed(\"/etc/passwd\")\n#endif\n", "s:1:17: ", outside);
  check_refused("const char t[] = {\n#embed \"/etc/passwd\"\n};\n", "s:2:2: ", "error: #embed is not Metal");
  check_refused("# embed <x>\n", "s:1:3: ", "error: #embed is not Metal");
}

static void refuses_pragmas(void) {
  static const char pragma[] = "error: this pragma is not Metal";
  check_refused("#pragma GCC dependency \"/etc/passwd\"\n", "s:1:2: ", pragma);
  check_refused("#pragma clang module import x\n", "s:1:2: ", pragma);
  check_refused("#pragma clang __debug crash\n", "s:1:2: ", pragma);
  check_refused("#pragma comment(lib, \"/x/y.so\")\n", "s:1:2: ", pragma);
  check_refused("#pragma include_alias(<a>, \"/etc/passwd\")\n", "s:1:2: ", pragma);
  check_refused("_Pragma(\"GCC dependency \\\"/etc/passwd\\\"\")\n", "s:1:1: ", pragma);
  check_refused("int a; _Pragma /**/ ( R\"(comment(lib, \"x\"))\" )\n", "s:1:8: ", pragma);
}

static void allows_the_rest(void) {
  check_allowed("");
  check_allowed("#include <metal_stdlib>\n#include \"c10/metal/utils.h\"\n#include <a..b/.../c.h>\n");
  check_allowed("// #include \"/etc/passwd\"\n/* \n#include \"/etc/passwd\"\n*/ int a; // \\\n#include \"/etc/passwd\"\n");
  check_allowed("const char *t = R\"(\n#include \"/etc/passwd\"\n)\", *u = u8R\"q(\n#embed \"x\"\n)\" )q\";\n");
  check_allowed("const char *t = \"a \\\n#include '/etc/passwd'\";\n");
  check_allowed("int a; #include \"/etc/passwd\"\n"); /* no directive: clang says what it is */
  check_allowed("#ifdef __has_include\n#if defined(__has_include) && __has_include(<x.h>) && defined __has_include\n#endif\n#endif\n");
  check_allowed("#ifndef /**/ __has_embed\n#endif\n");
  check_allowed("#pragma unroll\n#pragma once\n#pragma clang loop unroll(full)\n#pragma METAL fp math_mode(fast)\n#define P(x) _Pragma(#x)\n_Pragma(\"unroll\")\n");
  check_allowed("#define embed 1\nint include = embed, import;\n#line 3 \"x\"\n#error no\n# \n#");
  check_allowed("\"unterminated\n'\nR\"(unterminated");
}

/* ---- what only the compiler's output shows ---- */
static void check_compile(const char *source, const char *expected) {
  mps_library *library = NULL;
  CHECK_STATUS(mps_library_compile(device, source, NULL, &library), MPS_STATUS_COMPILE_ERROR);
  CHECK(library == NULL);
  if (strncmp(mps_error_message(), expected, strlen(expected)) == 0) return;
  test_failures++;
  fprintf(stderr, "message is:\n%s\nexpected to begin with: %s\n", mps_error_message(), expected);
}

static void refuses_assembly(void) {
  check_compile("kernel void f(device int *o) {\n  asm(\"nop\"); }\n", "program_source:2:3: error: inline assembly is not Metal");
  check_compile("__asm__(\".incbin \\\"/etc/passwd\\\"\");\n", "program_source:1:1: error: inline assembly is not Metal");
  check_compile("int g() __asm(\"system\");\n", "program_source:1:9: error: inline assembly is not Metal");
  check_compile("#define J(a, b) a##b\nJ(as, m)(\".incbin \\\"/etc/passwd\\\"\");\n", "program_source:2:1: error: inline assembly is not Metal");
  check_compile("# 1 \"metal_stdlib\" 1 3\nasm(\".incbin \\\"/etc/passwd\\\"\");\n", "metal_stdlib:1:1: error: inline assembly is not Metal");
}

static void refuses_made_pragmas(void) {
  check_compile("#define P(x) _Pragma(#x)\nP(comment(lib, \"/x/y.so\"))\n", "program_source:2:1: error: the pragma 'comment' is not Metal");
  check_compile("#define P(x) _Pragma(#x)\nP(clang module import x)\n", "program_source:2:1: fatal error: module 'x' not found");
}

/* The names that #line gives are names, not files to open. */
static void opens_no_named_file(void) {
  check_compile("#line 7 \"/dev/zero\"\nint a = y;\n", "/dev/zero:7:9: error: use of undeclared identifier 'y'");
  check_compile("#line 7 \"../../\\n strange\"\nint a = y;\n", "");
  CHECK(strstr(mps_error_message(), "undeclared identifier 'y'") != NULL);
  check_compile("# 7 \"/etc/passwd\" 1\nint a = y;\n", "/etc/passwd:7:9: error: use of undeclared identifier 'y'");
}

/* A file of the given folders may include its neighbours, but a link or ".." in it does not lead the compiler's messages elsewhere. */
static void keeps_to_the_given_folders(void) {
  char root[200], path[300], folder[300];
  CHECK_OK(mps_temporary_create(root, sizeof root));
  snprintf(folder, sizeof folder, "%s/given/", root);
  CHECK(mkdir(folder, 0700) == 0);
  snprintf(path, sizeof path, "%s/given/good.h", root);
  CHECK_OK(mps_file_write(path, "constant float k = 2.0;\n", 24));
  snprintf(path, sizeof path, "%s/given/bad.h", root);
  char text[300];
  int length = snprintf(text, sizeof text, "#include \"%s/secret.h\"\n", root);
  CHECK_OK(mps_file_write(path, text, (size_t)length));
  snprintf(path, sizeof path, "%s/secret.h", root);
  CHECK_OK(mps_file_write(path, "constant float k = 3.0;\n", 24));
  mps_option_set(MPS_OPTION_SHADER_INCLUDE, folder);
  mps_library *library = NULL;
  CHECK_OK(mps_library_compile(device, "#include <good.h>\nkernel void f(device float *o) { o[0] = k; }\n", NULL, &library));
  mps_library_release(library);
  snprintf(text, sizeof text, "program_source:1:1: error: the file %s/secret.h lies outside", root);
  check_compile("#include <bad.h>\nkernel void f(device float *o) { o[0] = k; }\n", text);
  mps_option_set(MPS_OPTION_SHADER_INCLUDE, NULL);
  snprintf(path, sizeof path, "rm -r '%s'", root);
  CHECK(system(path) == 0);
}

int main(void) {
  open_device();
  RUN(refuses_files_elsewhere);
  RUN(refuses_questions_about_files);
  RUN(refuses_pragmas);
  RUN(allows_the_rest);
  RUN(refuses_assembly);
  RUN(refuses_made_pragmas);
  RUN(opens_no_named_file);
  RUN(keeps_to_the_given_folders);
  mps_device_release(device);
  return test_end();
}
