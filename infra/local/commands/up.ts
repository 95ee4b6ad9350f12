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
import { operate, simulate } from './run.ts';
import { alreadyRunningMessage, firstLinkOf, hasValidSettings, reportLink, supervise } from './start.ts';

type Outcome = { ready: true; missing: readonly string[] } | { failed: string };
/** Messages from the detached supervisor to the command that started it. The outcome is the last message. */
type Message = { progress: string } | { serving: true } | Outcome;

/** Runs the detached supervisor, which writes to its log and, while connected, to `up`. */
export async function superviseDetached(paths: StackPaths, args: readonly string[]): Promise<number> {
  const send = (message: Message) => {
    // `up` may have exited. A channel that closes during the call is not an error.
    if (process.connected) process.send?.(message, undefined, undefined, () => {});
  };
  const log = (line: string) => console.log(`${new Date().toISOString()} ${line}`);
  try {
    const report = (line: string) => {
      log(line);
      send({ progress: line });
    };
    const onServing = () => send({ serving: true });
    const onReady = ({ missing }: Stack) => send({ ready: true, missing });
    const didRun = await supervise(paths, { report, args, onServing, onReady });
    if (!didRun) send({ failed: alreadyRunningMessage(paths) });
    return didRun ? 0 : 1;
  } catch (error) {
    log(String(error));
    send({ failed: (error as Error).message });
    return 1;
  } finally {
    if (process.connected) process.disconnect();
  }
}

/** Starts the supervisor as a separate process and returns after the test event. */
export async function up(paths: StackPaths, args: readonly string[] = []): Promise<number> {
  if (findSupervisor(paths) !== null) {
    console.log(alreadyRunningMessage(paths));
    return reportVerdict(await readVerdict(paths));
  }
  if (!(await hasValidSettings(paths, args))) return EXIT.usage;
  const logFile = logFileOf(paths, 'supervisor');
  const log = openLog(logFile);
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'main.ts'), 'supervise', ...args], {
    cwd: paths.checkout,
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  const interrupt = () => void endStack(paths).then(() => process.exit(130));
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  let link: Promise<string | null> = Promise.resolve(null);
  const outcome = await followStart(child, {
    report: createProgress((line) => console.log(line)),
    // Creating the link takes a second, so it runs during the test event.
    onServing: () => {
      link = firstLinkOf(paths, readStackFile(paths));
    },
    logFile,
  });
  if ('failed' in outcome) {
    console.error(outcome.failed);
    return EXIT.failed;
  }
  child.disconnect();
  child.unref();
  const file = readStackFile(paths);
  if (file !== null) console.log(`${stackReport(paths, file)}\n  Run npm run down to stop the stack.\n`);
  const [firstLink, verdict] = await Promise.all([link, readVerdict(paths)]);
  reportLink(firstLink);
  for (const sentence of outcome.missing) console.log(sentence);
  return reportVerdict(verdict);
}

/** Reports the supervisor's progress. @returns its last message */
function followStart(
  child: ChildProcess,
  { report, onServing, logFile }: { report(line: string): void; onServing(): void; logFile: string },
): Promise<Outcome> {
  return new Promise((done) => {
    child.on('message', (message: Message) => {
      if ('progress' in message) report(message.progress);
      else if ('serving' in message) onServing();
      else done(message);
    });
    child.once('exit', (code, signal) => done({ failed: `the supervisor exited (${signal ?? code}); see ${logFile}` }));
  });
}

const readVerdict = async (paths: StackPaths): Promise<Verdict> =>
  toVerdict(await readStatus(paths, { includeLag: false }));

/** Prints a verdict. @returns the exit code */
function reportVerdict({ isWell, sentence, hint }: Verdict): number {
  console.log(sentence + hint);
  return isWell ? EXIT.ok : EXIT.failed;
}

/** A short history of the demo chain, so that the chain pages have content. */
const CHAIN = ['--chain', '--activities', '500', '--rate', '100'];

/** Starts the stack if necessary, loads the generated game and prints the portal URL. */
export async function demo(paths: StackPaths, args: readonly string[]): Promise<number> {
  const wasRunning = findSupervisor(paths) !== null;
  if (!wasRunning) {
    const code = await up(paths);
    if (code !== EXIT.ok) return code;
  }
  const loaded = await operate('demo')(paths, args);
  if (loaded !== EXIT.ok) return loaded;
  const file = readStackFile(paths);
  if (file?.chain !== undefined && file.chain !== null) {
    const code = await simulate(paths, CHAIN);
    if (code !== EXIT.ok) return code;
  }
  console.log(`\n  Portal: ${file?.portal}\n`);
  // A stack that was just started has already printed a link.
  if (wasRunning) reportLink(await firstLinkOf(paths, file));
  return EXIT.ok;
}
