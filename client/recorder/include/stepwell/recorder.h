/* Stepwell's recorder: what a training process calls. C ABI; stepwell.h is the C++ face.
 *
 *   stepwell_options options;
 *   stepwell_options_init(&options);
 *   options.trial = "resnet50-a";
 *   stepwell_open(&options);
 *   stepwell_scope_id forward = stepwell_define_scope("forward");
 *   stepwell_step_begin();
 *   for (;;) {
 *     stepwell_scope scope;
 *     stepwell_scope_begin(&scope, forward);
 *     ...
 *     stepwell_scope_end(&scope);
 *     stepwell_step_end(STEPWELL_NEXT_BATCH);
 *   }
 *   stepwell_close(5000);
 *
 * It never throws, prints, installs a signal handler or changes a result: what cannot be recorded
 * is dropped and counted. Recording (scope, record, step) is plain stores into a buffer of the
 * calling thread: no lock, no allocation, no system call, except on the first use of a thread or of
 * a name; then, too, it waits for no file system. All functions are thread-safe; none may be called
 * from a signal handler. A process has at most one open recorder; exec starts afresh.
 *
 * A forked child that records becomes a worker of the process it was forked from: its samples belong
 * to the same writer, with the label worker = 0, 1, ..., the lowest number that is free. It joins at
 * its first call that records, which touches the spool directory; a child that records nothing costs
 * nothing. Ids of scopes and series stay valid in it. Children of a worker are workers of the same
 * writer. What a worker recorded is stored however it ends: its exit waits for no ack, unless the
 * process that opened the recorder is gone (a daemon; one that begins to record after all others are
 * gone has a writer of its own in the same attempt). A child that would rather have a writer of its
 * own calls stepwell_open before it records.
 *
 * What is recorded lies in a spool directory, from where an agent (`stepwell agent`, a process of its
 * own) sends it to the master. A thread of the recorder's starts one where none serves the directory,
 * and again within two seconds where one died; it ends by itself when nobody records any more. It is
 * no child of this process, holds none of its files, and gets none of its signals. Where none can be
 * started recording goes on, stepwell_message says why, and what finds the buffers full is dropped
 * and counted.
 *
 * A process that exits (returns from main, calls exit) with an open recorder closes it then, and
 * waits for the ack at most STEPWELL_EXIT_WAIT seconds (default 5; 0 = not at all), and no more than
 * 2 if no agent ever came and none is on its way. Threads may record while it does. _exit, exec and
 * signals close nothing: the agent drains what was recorded as that of a process that died.
 *
 * Environment, where the options leave a field empty: STEPWELL_SPOOL_DIR, STEPWELL_SERVER,
 * STEPWELL_PROJECT, STEPWELL_TRIAL, STEPWELL_ATTEMPT_KEY, STEPWELL_TOKEN, STEPWELL_AGENT,
 * STEPWELL_INTERVAL, STEPWELL_GROUPS, STEPWELL_WITHOUT, STEPWELL_WITH, TMPDIR,
 * STEPWELL_SHARED_MEMORY (where rings of a spool in TMPDIR lie; default /dev/shm, empty = beside the
 * spool), and the launchers'
 * RANK, WORLD_SIZE, TORCHELASTIC_*, SLURM_*, MASTER_ADDR. Whatever the options say:
 * STEPWELL_DISABLED=1 turns everything off, STEPWELL_OFFLINE=1 sends nothing (`stepwell upload` does
 * later), STEPWELL_AGENT=off starts no agent, STEPWELL_SYSTEM_METRICS=0 samples no system metrics.
 * docs/environment.md describes each. */
#ifndef STEPWELL_RECORDER_H_
#define STEPWELL_RECORDER_H_

#include <stddef.h>
#include <stdint.h>

#define STEPWELL_VERSION "0.1.0"

#if defined(__GNUC__)
#define STEPWELL_API __attribute__((visibility("default")))
#else
#define STEPWELL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- open and close ------------------------------------------------------------------------------
 */

typedef enum stepwell_state {
  STEPWELL_CLOSED = 0,      /* not opened, or closed */
  STEPWELL_RECORDING = 1,   /* into the spool directory, where an agent finds it; in a forked child,
                               into that of its parent */
  STEPWELL_MEMORY_ONLY = 2, /* no usable spool directory: recorded, counted, and lost at exit */
  STEPWELL_DISABLED = 3     /* STEPWELL_DISABLED is set */
} stepwell_state;

typedef struct stepwell_label {
  const char* name;
  const char* value;
} stepwell_label;

/* Every field may keep what stepwell_options_init gave it. Texts are copied, lists are words with
 * commas between. Fields are only ever added, at the end. */
typedef struct stepwell_options {
  size_t size; /* of this struct as the caller knows it, set by stepwell_options_init */
  /* mode 0700, ours, on a local file system; made if only it is missing. NULL = the system agent's
   * where one runs, else stepwell-UID in the temporary directory. */
  const char* spool_dir;
  const char* server;      /* host:port, or "offline" = send nothing; NULL = the agent's own */
  const char* project;     /* NULL = "default"; what is not [A-Za-z0-9._-] becomes _ */
  const char* trial;       /* a name, or "id:7"; NULL = from the job, else one of its own */
  const char* attempt_key; /* one start of the trial; NULL = from the job, else one of its own */
  const char* token;       /* this writer's ingest token */
  int32_t rank;            /* -1 = from RANK or SLURM_PROCID, else 0 */
  int32_t world_size; /* -1 = from WORLD_SIZE or SLURM_NTASKS, else unknown; so is one <= rank */
  /* Of all its samples. At most 30; later ones are left out, and one without a name or named rank or
   * agent, which the master sets. */
  const stepwell_label* labels;
  size_t label_count;
  /* The agent's program, a path or a name on PATH. NULL = `stepwell` beside this program, beside this
   * library or in ../bin there, else on PATH. */
  const char* agent;
  int32_t start_agent; /* 0 = never start one; it is started by hand, or by another process */
  /* What the agent samples of this machine and this process for the trial, see docs/metrics.md. */
  int32_t system_metrics; /* 0 = nothing */
  int64_t interval_us;    /* 10000 ... 3600000000; 0 = the agent's, one second */
  const char* groups;     /* only these metric groups; NULL = all */
  const char* without;    /* not these metrics */
  const char* with;       /* these, which are taken on request only */
  /* What is read as the process's environment, and handed to the agent: texts NAME=VALUE, NULL at the end, as
   * environ has them. For callers whose other threads may change that one while stepwell_open reads it. NULL =
   * environ. */
  const char* const* environment;
} stepwell_options;

/* Private; call stepwell_options_init. */
STEPWELL_API void stepwell_options_init_size(stepwell_options* options, size_t size);
static inline void stepwell_options_init(stepwell_options* options) {
  stepwell_options_init_size(options, sizeof(*options));
}

/* Opens this process's writer. options may be NULL. Touches the spool directory; anything that goes
 * wrong there ends in STEPWELL_MEMORY_ONLY, never in an error: see stepwell_message. Already open, or
 * a forked child that has recorded: changes nothing. */
STEPWELL_API stepwell_state stepwell_open(const stepwell_options* options);
STEPWELL_API stepwell_state stepwell_current_state(void);
/* Why the state is what it is, in words; "" when recording as asked for a master. While recording it
 * tells, too, which spool directories were refused and what was taken instead, options and variables
 * that cannot be, why no agent can be started, and offline the command that sends what is recorded.
 * Valid until the next stepwell_open. */
STEPWELL_API const char* stepwell_message(void);

/* Ends the writer (a worker its part of it) and waits until all of it is stored for good by the
 * master, at most timeout_ms (0 = do not wait). 1 = stored, 0 = not known to be (an agent goes on with it). Closing twice is
 * fine: the second is 0. Scopes still open elsewhere are lost. Calls of other threads that are on
 * their way when it begins are waited for and stored; later ones of a thread that was recording count
 * as dropped, and the master is told of those that came before the agent had read the rings out. */
STEPWELL_API int stepwell_close(int64_t timeout_ms);

/* The same in its parts, for callers that do something meanwhile: begin ends the writer and waits for nothing
 * (NULL: none was open); another may be opened at once. await waits for at most so long more: 1 = stored, 0 = not
 * yet, -1 = nobody will say. ease is for who keeps many: of descriptors, rings and the writer's memory nothing is left
 * but the page in which await goes on to look, and no agent is started for it any more. end must follow, of whatever
 * begin gave, and be the last. Any thread may await and ease; in a child that was forked meanwhile await is -1. */
typedef struct stepwell_closing stepwell_closing;
STEPWELL_API stepwell_closing* stepwell_close_begin(void);
/* As stepwell_close_begin, for who wants nothing recorded from here on: calls that come later are no loss,
 * and count nowhere. */
STEPWELL_API stepwell_closing* stepwell_switch_off_begin(void);
STEPWELL_API int stepwell_close_await(stepwell_closing* closing, int64_t timeout_ms);
STEPWELL_API void stepwell_close_ease(stepwell_closing* closing);
STEPWELL_API void stepwell_close_end(stepwell_closing* closing);

/* What an exit waits at most: STEPWELL_EXIT_WAIT, in milliseconds. */
STEPWELL_API int64_t stepwell_exit_wait_ms(void);

/* Events given up since open: rings full, no ring, no room for names, nested too deep, too late. */
STEPWELL_API uint64_t stepwell_dropped_count(void);

/* --- names ---------------------------------------------------------------------------------------
 */

/* Ids stay valid in this process for ever, also before open and across open and close. Defining the
 * same again gives the same id. 0 = refused (see each); recording under 0 does nothing. */
typedef uint32_t stepwell_scope_id;
typedef uint32_t stepwell_series_id;

/* name: 1 ... 200 bytes of UTF-8 without '/' and control characters; not "step", nor ending in
 * ".count". At most 4096 names. */
STEPWELL_API stepwell_scope_id stepwell_define_scope(const char* name);
/* One whose timings have labels, as those of a series; another one than that of the plain name, at the
 * same price. What is nested in it has them, too, but for those that it has a value of its own for. */
STEPWELL_API stepwell_scope_id stepwell_define_labelled_scope(const char* name,
                                                              const stepwell_label* labels,
                                                              size_t label_count);

typedef enum stepwell_series_kind {
  STEPWELL_GAUGE = 1,
  STEPWELL_COUNTER = 2, /* running total since its source began, may reset */
  STEPWELL_DURATION = 3 /* seconds */
} stepwell_series_kind;

/* group and name: 1 ... 200 bytes of UTF-8 without control characters; unit may be NULL. At most 32
 * labels, names different, none of rank, agent, device, worker. At most 16384 series. loader (train,
 * eval) and clock (host, device) are names that hooks use. */
STEPWELL_API stepwell_series_id stepwell_define_series(const char* group, const char* name,
                                                       const char* unit, stepwell_series_kind kind,
                                                       const stepwell_label* labels,
                                                       size_t label_count);

/* --- record --------------------------------------------------------------------------------------
 */

/* Private; read through stepwell_enabled(). */
extern STEPWELL_API const uint32_t* stepwell_gate;

/* 1 while recording is on. The cost of everything below while it is off. */
static inline int stepwell_enabled(void) {
  return (
      int)(__atomic_load_n(__atomic_load_n(&stepwell_gate, __ATOMIC_RELAXED), __ATOMIC_RELAXED) &
           1u);
}

/* Lives on the caller's stack from begin to end. Private. */
typedef struct stepwell_scope {
  uint64_t start_ns;
  uint32_t path;
  uint32_t parent;
  uint32_t step;
  uint32_t thread;
} stepwell_scope;

/* A named, timed region of the calling thread; nested scopes form a path. Inside a step a path
 * gives one sample per step: its total in seconds. End on the thread that began, innermost first;
 * other orders lose nesting, nothing else: what begins after one that ended out of order lies in
 * none of those that are open. Its end tells how long it took, in nanoseconds; 0 = not
 * recorded. */
STEPWELL_API void stepwell_scope_begin(stepwell_scope* scope, stepwell_scope_id name);
/* One that lies in none that are open, and in which none lies that begins later: what takes turns with others on
 * a thread, as coroutines do. As many as wanted are open at once, and end in any order. */
STEPWELL_API void stepwell_scope_begin_apart(stepwell_scope* scope, stepwell_scope_id name);
STEPWELL_API uint64_t stepwell_scope_end(stepwell_scope* scope);

/* The number of the path of the innermost scope that is open on this thread, as stepwell_scope has it
 * between begin and end; 0 = none, or nothing is recorded. */
STEPWELL_API uint32_t stepwell_scope_path(void);
/* Its name. Looks through all paths of the thread, some ten nanoseconds: not for each scope. */
STEPWELL_API stepwell_scope_id stepwell_innermost_scope(void);

/* A value now, with the batch of the step that is open on this thread, if one is. */
STEPWELL_API void stepwell_record(stepwell_series_id series, double value);
/* A value of a known time (microseconds since 1970 UTC) and batch (-1 = none). */
STEPWELL_API void stepwell_record_at(stepwell_series_id series, int32_t batch,
                                     int64_t start_time_us, double value);

/* A moment with a name of scopes: in traces (a run's, or a capture's) an event without length, with the batch of
 * the step that is open on this thread, if one is; in no timing. Costs what a record does. */
STEPWELL_API void stepwell_instant(stepwell_scope_id name);

#define STEPWELL_NEXT_BATCH (-1)

/* Opens the first step of this thread. Within an open step it starts that step anew: what was
 * recorded since the last stepwell_step_end then lies outside any step. */
STEPWELL_API void stepwell_step_begin(void);
/* Ends the step that is open on this thread and opens the next one. batch: index >= 0 of the
 * training batch that was processed, or STEPWELL_NEXT_BATCH (from 0). Without an open step it only
 * opens one. */
STEPWELL_API void stepwell_step_end(int32_t batch);
/* Leaves the step that is open on this thread without ending it, as a loop does that is over: what
 * was recorded in it, and what comes next, lies outside any step. */
STEPWELL_API void stepwell_step_leave(void);

/* --- native profilers: private to packages that have one ------------------------------------------
 */

/* What the agent asks of one, as of the last step's end: the number of a capture, 0 = none. One load. */
extern STEPWELL_API uint32_t stepwell_capture_request;
/* 1 = who called looks at that at each step's end from now on. */
STEPWELL_API void stepwell_offer_capture(int is_offered);
/* Which steps it is of: as of now, the number, else 0. The pointers are not NULL. Takes a lock. */
STEPWELL_API uint32_t stepwell_capture_wanted(int32_t* first_batch, int32_t* step_count);
/* outcome: CaptureOutcome of client/recorder/src/spool_format.h; step_count: steps that are over. Takes a lock. */
STEPWELL_API void stepwell_capture_answer(uint32_t request, uint32_t outcome, uint32_t step_count);

/* --- traces --------------------------------------------------------------------------------------
 */

/* Leaves word for the agent to upload a trace's file to the master of the writer that is open, or was last: Chrome's
 * JSON, Perfetto's, .xplane.pb, or text. path is absolute, the file whole and not written to any more. What is not known
 * of epoch and batches is -1. removes_file: it goes once it is stored; one that no master
 * takes stays, but where its folder's name begins with stepwell-traces-, which was made for it. 1 = an agent will find it, also when this process
 * is gone; 0 = none will (recorded into memory, never opened, under an agent of all users), or no room for the word.
 * Blocks on the file system, and waits for no upload: not for each step. */
STEPWELL_API int stepwell_upload_trace(const char* path, int32_t epoch, int32_t first_batch,
                                       int32_t last_batch, int removes_file);

#ifdef __cplusplus
}
#endif

#endif /* STEPWELL_RECORDER_H_ */
