/* sqlrun SOURCE DESTINATION SCRIPT... [options]: hops as SQL written by hand.

   Each script fills a store of its own from the one before (DESTINATION.1, DESTINATION.2, ..., DESTINATION); the stores
   between are deleted as soon as the next is complete. Prints one JSON object: wall, cpu, rows, index, fsync (seconds),
   peak (bytes).

   A line of a script is one letter, a space, and a statement:
     T  a table or row of the layout, or anything else that is done at once
     I  an index
     C  TABLE|statement with ?1 and ?2, a range of the rowids of src.TABLE

   Without --chunk a script is one transaction. With --chunk N each C runs in ranges of N rowids, each a transaction
   that also notes how far it came, as somebody would write it who wants to go on after a crash.
     --journal MODE (OFF)   --cache KIB (2000)
     --copy   the store is a copy of the one before, which the script alters

   upper() is replaced by one that knows letters beyond ASCII, so that the rows can be compared with those of others. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <locale.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <wctype.h>

static const char *journal = "OFF";
static long chunk = 0, cache = 2000;
static int copies = 0;
static double rows_seconds, index_seconds, fsync_seconds;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static void fail(sqlite3 *db, const char *what) {
  fprintf(stderr, "sqlrun: %s: %s\n", what, db ? sqlite3_errmsg(db) : "cannot be read");
  exit(1);
}

static void execute(sqlite3 *db, const char *sql) {
  if (sqlite3_exec(db, sql, 0, 0, 0) != SQLITE_OK) fail(db, sql);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql) {
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, 0) != SQLITE_OK) fail(db, sql);
  return statement;
}

/* The peak of this program; ru_maxrss would carry that of the parent over exec. */
static long peak(void) {
  char line[256];
  long kib = 0;
  FILE *file = fopen("/proc/self/status", "r");
  if (!file) return 0;
  while (fgets(line, sizeof line, file))
    if (!strncmp(line, "VmHWM:", 6)) kib = atol(line + 6);
  fclose(file);
  return kib * 1024;
}

static int decode(const unsigned char **text, const unsigned char *end) {
  const unsigned char *p = *text;
  int length = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
  int code = length == 1 ? *p : *p & (0x7f >> length);
  for (int i = 1; i < length; i++) code = code << 6 | (p + i < end ? p[i] & 0x3f : 0);
  *text = p + length < end ? p + length : end;
  return code;
}

static unsigned char *encode(unsigned char *out, unsigned code) {
  if (code < 0x80) {
    *out++ = code;
  } else if (code < 0x800) {
    *out++ = 0xc0 | code >> 6, *out++ = 0x80 | (code & 0x3f);
  } else if (code < 0x10000) {
    *out++ = 0xe0 | code >> 12, *out++ = 0x80 | (code >> 6 & 0x3f), *out++ = 0x80 | (code & 0x3f);
  } else {
    *out++ = 0xf0 | code >> 18, *out++ = 0x80 | (code >> 12 & 0x3f);
    *out++ = 0x80 | (code >> 6 & 0x3f), *out++ = 0x80 | (code & 0x3f);
  }
  return out;
}

static void upper(sqlite3_context *context, int count, sqlite3_value **values) {
  const unsigned char *text = sqlite3_value_text(values[0]);
  (void)count;
  if (!text) return;
  int length = sqlite3_value_bytes(values[0]);
  /* No letter grows to more than twice its bytes (U+0250 to U+2C6F, three for two, is the worst). */
  unsigned char *result = sqlite3_malloc(2 * length + 1), *out = result;
  if (!result) {
    sqlite3_result_error_nomem(context);
    return;
  }
  for (const unsigned char *p = text, *end = text + length; p < end;) {
    if (*p < 0x80) {
      *out++ = *p >= 'a' && *p <= 'z' ? *p - 32 : *p;
      p++;
      continue;
    }
    int code = decode(&p, end);
    if (code == 0xdf) { /* the one letter of the workload that becomes two */
      *out++ = 'S', *out++ = 'S';
    } else {
      out = encode(out, towupper(code));
    }
  }
  sqlite3_result_text(context, (char *)result, out - result, sqlite3_free);
}

/* What cp does, without asking for shared extents: the blocks are written. */
static void duplicate(const char *source, const char *destination) {
  static char block[1 << 17];
  int from = open(source, O_RDONLY | O_CLOEXEC), to = open(destination, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  ssize_t size = 0;
  if (from < 0 || to < 0) fail(0, from < 0 ? source : destination);
  while ((size = read(from, block, sizeof block)) > 0)
    if (write(to, block, size) != size) fail(0, destination);
  if (size < 0 || close(from) || close(to)) fail(0, source);
}

/* Runs a C line: at once, or in chunks. */
static void copy(sqlite3 *db, char *line, int number, sqlite3_stmt *progress) {
  char *bar = strchr(line, '|'), sql[256];
  if (!bar) fail(0, line);
  *bar = 0;
  snprintf(sql, sizeof sql, "SELECT max(rowid) FROM src.%s", line);
  sqlite3_stmt *last = prepare(db, sql);
  long end = sqlite3_step(last) == SQLITE_ROW ? sqlite3_column_int64(last, 0) : 0;
  sqlite3_finalize(last);
  sqlite3_stmt *statement = prepare(db, bar + 1);
  long step = chunk ? chunk : end;
  for (long low = 1; low <= end; low += step) {
    long high = low + step - 1 < end ? low + step - 1 : end;
    if (chunk) execute(db, "BEGIN");
    sqlite3_bind_int64(statement, 1, low);
    sqlite3_bind_int64(statement, 2, high);
    if (sqlite3_step(statement) != SQLITE_DONE) fail(db, bar + 1);
    sqlite3_reset(statement);
    if (!chunk) continue;
    sqlite3_bind_int64(progress, 1, number);
    sqlite3_bind_int64(progress, 2, high);
    if (sqlite3_step(progress) != SQLITE_DONE) fail(db, "progress");
    sqlite3_reset(progress);
    execute(db, "COMMIT");
  }
  sqlite3_finalize(statement);
}

static void hop(const char *source, const char *destination, const char *script) {
  sqlite3 *db;
  char sql[4600], *line = 0;
  size_t size = 0;
  unlink(destination);
  if (copies) duplicate(source, destination);
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(destination, &db, flags, 0) != SQLITE_OK) fail(db, destination);
  sqlite3_create_function(db, "upper", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, 0, upper, 0, 0);
  snprintf(sql, sizeof sql,
           "PRAGMA auto_vacuum = 2; PRAGMA journal_mode = %s; PRAGMA synchronous = OFF;"
           "PRAGMA main.locking_mode = EXCLUSIVE;"
           "PRAGMA cache_size = -%ld; PRAGMA temp_store = FILE", journal, cache);
  execute(db, sql);
  snprintf(sql, sizeof sql, "ATTACH 'file:%s?mode=ro' AS src; PRAGMA src.cache_size = -%ld", source, cache);
  execute(db, sql);
  sqlite3_stmt *progress = 0;
  if (chunk) {
    execute(db, "CREATE TABLE hand_progress (step INTEGER PRIMARY KEY, done INTEGER)");
    progress = prepare(db, "INSERT OR REPLACE INTO hand_progress VALUES (?1, ?2)");
  } else {
    execute(db, "BEGIN");
  }
  FILE *file = fopen(script, "r");
  if (!file) fail(0, script);
  for (int number = 0; getline(&line, &size, file) > 0; number++) {
    line[strcspn(line, "\n")] = 0;
    double start = now();
    if (line[0] == 'C') copy(db, line + 2, number, progress);
    else execute(db, line + 2);
    if (line[0] == 'I') index_seconds += now() - start;
    else rows_seconds += now() - start;
  }
  free(line);
  fclose(file);
  sqlite3_finalize(progress);
  double start = now();
  execute(db, chunk ? "DROP TABLE hand_progress" : "COMMIT");
  rows_seconds += now() - start;
  if (sqlite3_close(db) != SQLITE_OK) fail(db, "close");
  snprintf(sql, sizeof sql, "%s-journal", destination);
  unlink(sql);
}

int main(int count, char **words) {
  char *scripts[16], before[4096], current[4096];
  int hops = 0;
  if (count < 4 || !setlocale(LC_CTYPE, "C.UTF-8"))
    fail(0, count < 4 ? "a source, a destination, scripts" : "locale C.UTF-8");
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  for (int i = 3; i < count; i++) {
    if (i + 1 < count && !strcmp(words[i], "--journal")) journal = words[++i];
    else if (i + 1 < count && !strcmp(words[i], "--cache")) cache = atol(words[++i]);
    else if (i + 1 < count && !strcmp(words[i], "--chunk")) chunk = atol(words[++i]);
    else if (!strcmp(words[i], "--copy")) copies = 1;
    else if (hops < 16) scripts[hops++] = words[i];
  }
  double start = now();
  snprintf(before, sizeof before, "%s", words[1]);
  for (int i = 0; i < hops; i++) {
    if (i == hops - 1) snprintf(current, sizeof current, "%s", words[2]);
    else snprintf(current, sizeof current, "%s.%d", words[2], i + 1);
    hop(before, current, scripts[i]);
    if (i > 0) unlink(before);
    strcpy(before, current);
  }
  double synced = now();
  int file = open(words[2], O_RDWR | O_CLOEXEC);
  if (file < 0 || fsync(file) || close(file)) fail(0, words[2]);
  fsync_seconds = now() - synced;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("{\"wall\": %.4f, \"cpu\": %.4f, \"rows\": %.4f, \"index\": %.4f, \"fsync\": %.4f, \"peak\": %ld}\n",
         now() - start,
         usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
         rows_seconds, index_seconds, fsync_seconds, peak());
  return 0;
}
