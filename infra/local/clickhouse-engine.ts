// The ClickHouse process: runs clickhouse-local from a shared library until its standard input ends, also when the parent
// dies. The statement SYSTEM START LISTEN opens the HTTP listener.
//
// Standard input must be a terminal: without one, clickhouse-local before 26.8 ends when a client resets its connection.
// So this process makes a pseudo-terminal, and a thread types end-of-file into it when the real input ends.
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

/** Replaces standard input by a terminal. @returns the terminal's other end, and the real input */
function lendTerminal(): { terminal: number; input: number } {
  open({ library: 'libc', path: '' }); // '' is this process
  // A controlling terminal would send a signal when it hangs up.
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
 * In clickhouse-local every account can read all files of this user by the function `file`, unless the working folder of
 * the process is gone. ClickHouse needs the folder to start. So its first statement reads a pipe, and a thread then
 * removes the folder.
 */
function createRemovedFolder(dataFolder: string): { statement: string; thread: Worker } {
  const folder = join(dataFolder, '..', 'nowhere');
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
  const thread = new Worker(new URL('./clickhouse-folder-removal.ts', import.meta.url), {
    workerData: { folder, pipe },
  });
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
// ClickHouse cannot create tables of `system` again while folders of the last run exist.
rmSync(join(dataFolder, 'data', 'system'), { recursive: true, force: true });
const workerData = lendTerminal();
const lifeline = new Worker(new URL('./clickhouse-lifeline.ts', import.meta.url), { workerData });
const removal = createRemovedFolder(dataFolder);
const isUp = (thread: Worker) => new Promise((done, fail) => thread.once('online', done).once('error', fail));
// The engine occupies the main thread, so the threads must run first.
await Promise.all([isUp(lifeline), isUp(removal.thread)]);
runEngine(library, [...flags, '--query', `${removal.statement}; ${statement}`]);
process.exit(0);
