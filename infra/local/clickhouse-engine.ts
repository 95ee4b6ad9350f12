// A separate process: all of ClickHouse in one shared library.
//
// `chdb_query_cmdline(argc, argv)` runs the program clickhouse-local on the main thread of this process. The statement
// SYSTEM START LISTEN at its prompt opens the ordinary HTTP listener. The call returns when its standard input ends.
//
// Its standard input must be a terminal. Without one, clickhouse-local before ClickHouse 26.8 installs an error handler
// that ends the whole process when any client resets its connection. So this process opens a pseudo-terminal, makes one
// end its standard input and keeps the other. A thread waits for the end of the real input and then types end-of-file
// into the terminal. The input also ends when the parent dies, so no orphan is left.
import { constants, mkdirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { DataType, load, open } from 'ffi-rs';

const STANDARD_INPUT = 0;

function callC(funcName: string, paramsValue: number[]): number {
  const paramsType = paramsValue.map(() => DataType.I32);
  const result = load({ library: 'libc', funcName, retType: DataType.I32, paramsType, paramsValue });
  if (result < 0) throw new Error(`${funcName} failed: no terminal for the ClickHouse engine`);
  return result;
}

/** Replaces standard input by a new terminal. @returns the terminal's other end, and the real input */
function lendTerminal(): { terminal: number; input: number } {
  open({ library: 'libc', path: '' }); // '' is this process itself with the libraries it has loaded
  // NOCTTY, because a controlling terminal would send a signal when it hangs up.
  const mode = constants.O_RDWR | constants.O_NOCTTY;
  const terminal = openSync('/dev/ptmx', mode);
  if (process.platform === 'darwin') callC('grantpt', [terminal]);
  callC('unlockpt', [terminal]);
  const name = load({
    library: 'libc',
    funcName: 'ptsname',
    retType: DataType.String,
    paramsType: [DataType.I32],
    paramsValue: [terminal],
  });
  const input = callC('dup', [STANDARD_INPUT]);
  callC('dup2', [openSync(name, mode), STANDARD_INPUT]);
  return { terminal, input };
}

/**
 * In clickhouse-local every account can read every file of this user by the function `file`, including all data and
 * passwords. No grant or setting forbids it. But the function first looks up the current folder of the process, and
 * fails if that folder is gone. ClickHouse needs the folder while it starts. So its first statement reads a pipe, and
 * while it waits a thread removes the folder.
 * @returns that statement, and the thread
 */
function createNowhere(dataFolder: string): { statement: string; thread: Worker } {
  const folder = join(dataFolder, '..', 'nowhere');
  // A ClickHouse that was killed during its start has left its folder.
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const pipe = join(folder, 'pipe');
  const made = load({
    library: 'libc',
    funcName: 'mkfifo',
    retType: DataType.I32,
    paramsType: [DataType.String, DataType.I32],
    paramsValue: [pipe, 0o600],
  });
  if (made < 0) throw new Error(`mkfifo failed: no pipe in ${folder}`);
  process.chdir(folder);
  const thread = new Worker(new URL('./clickhouse-nowhere.ts', import.meta.url), { workerData: { folder, pipe } });
  return { statement: `SELECT file('pipe') FORMAT Null`, thread };
}

function runEngine(library: string, flags: string[]): void {
  open({ library: 'engine', path: library });
  const args = ['clickhouse-local', ...flags];
  const result = load({
    library: 'engine',
    funcName: 'chdb_query_cmdline',
    retType: DataType.External,
    paramsType: [DataType.I32, DataType.StringArray],
    paramsValue: [args.length, args],
  });
  const error = {
    library: 'engine',
    funcName: 'chdb_result_error',
    paramsType: [DataType.External],
    paramsValue: [result],
  };
  if (load({ ...error, retType: DataType.U64 })) throw new Error(load({ ...error, retType: DataType.String }));
}

const [library = '', dataFolder = '', statement = '', ...flags] = process.argv.slice(2);
// At its end ClickHouse forgets the tables of `system` but leaves their folders, and then it cannot create them again.
rmSync(join(dataFolder, 'data', 'system'), { recursive: true, force: true });
const workerData = lendTerminal();
const lifeline = new Worker(new URL('./clickhouse-lifeline.ts', import.meta.url), { workerData });
const nowhere = createNowhere(dataFolder);
const isUp = (thread: Worker) => new Promise((done, fail) => thread.once('online', done).once('error', fail));
// From here on the main thread does nothing else, so the threads must run before.
await Promise.all([isUp(lifeline), isUp(nowhere.thread)]);
runEngine(library, [...flags, '--query', `${nowhere.statement}; ${statement}`]);
process.exit(0);
