import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT } from '../command-table.mjs';
import { openLog } from '../logs.ts';
import { logFileOf, type StackPaths } from '../paths.ts';
import { createProgress, stackReport } from '../report.ts';
import { readStackFile } from '../stack-file.ts';
import type { Stack } from '../stack-options.ts';
import { readStatus, toVerdict, type Verdict } from '../status.ts';
import { endStack, findSupervisor } from '../supervisor.ts';
import { alreadyRunning, firstLinkOf, hasValidSettings, reportLink, supervise } from './start.ts';

/** What the detached supervisor sends to the command that started it; one of the last two is its last. */
type Message = { say: string } | { serving: true } | { ready: true; missing: readonly string[] } | { failed: string };
type Outcome = Exclude<Message, { say: string } | { serving: true }>;

/** The detached supervisor. All its output goes to its log, and to `up` while that listens. */
export async function superviseDetached(places: StackPaths, args: readonly string[]): Promise<number> {
  const tell = (message: Message) => {
    // `up` may have ended. A channel that closes meanwhile is no fault of the stack.
    if (process.connected) process.send?.(message, undefined, undefined, () => {});
  };
  const log = (line: string) => console.log(`${new Date().toISOString()} ${line}`);
  try {
    const say = (line: string) => {
      log(line);
      tell({ say: line });
    };
    const onServing = () => tell({ serving: true });
    const onReady = ({ missing }: Stack) => tell({ ready: true, missing });
    const didRun = await supervise(places, { report: say, args, onServing, onReady });
    if (!didRun) tell({ failed: alreadyRunning(places) });
    return didRun ? 0 : 1;
  } catch (error) {
    log(String(error));
    tell({ failed: (error as Error).message });
    return 1;
  } finally {
    if (process.connected) process.disconnect();
  }
}

/** `npm run up`: starts the supervisor as a separate process, and returns when a test event has come through. */
export async function up(places: StackPaths, args: readonly string[] = []): Promise<number> {
  if (findSupervisor(places) !== null) {
    console.log(alreadyRunning(places));
    return reportVerdict(await readVerdict(places));
  }
  if (!(await hasValidSettings(places))) return EXIT.usage;
  const logFile = logFileOf(places, 'supervisor');
  const log = openLog(logFile);
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'main.ts'), 'supervise', ...args], {
    cwd: places.checkout,
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  const interrupt = () => void endStack(places).then(() => process.exit(130));
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  let link: Promise<string | null> = Promise.resolve(null);
  const outcome = await followStart(child, {
    report: createProgress((line) => console.log(line)),
    // Made by a process that takes a second, so it is made while the test event is on its way.
    onServing: () => {
      link = firstLinkOf(places, readStackFile(places));
    },
    logFile,
  });
  if ('failed' in outcome) {
    console.error(outcome.failed);
    return EXIT.failed;
  }
  child.disconnect();
  child.unref();
  const file = readStackFile(places);
  if (file !== null) console.log(`${stackReport(places, file)}\n  npm run down drains and stops all of it.\n`);
  const [madeLink, verdict] = await Promise.all([link, readVerdict(places)]);
  reportLink(madeLink);
  for (const sentence of outcome.missing) console.log(sentence);
  return reportVerdict(verdict);
}

interface Follower {
  report: (line: string) => void;
  onServing: () => void;
  /** Named when the supervisor ends without a word. */
  logFile: string;
}

/** Resolves to the supervisor's last message. */
function followStart(child: ChildProcess, { report: say, onServing, logFile }: Follower): Promise<Outcome> {
  return new Promise((done) => {
    child.on('message', (message: Message) => {
      if ('say' in message) say(message.say);
      else if ('serving' in message) onServing();
      else done(message);
    });
    child.once('exit', (code, signal) => done({ failed: `the supervisor ended (${signal ?? code}); see ${logFile}` }));
  });
}

/** The verdict that `doctor` and `status` also print. */
const readVerdict = async (places: StackPaths): Promise<Verdict> =>
  toVerdict(await readStatus(places, { readsLag: false }));

/** @returns the exit code that belongs to the verdict */
function reportVerdict({ isWell, sentence, hint }: Verdict): number {
  console.log(sentence + hint);
  return isWell ? EXIT.ok : EXIT.failed;
}
