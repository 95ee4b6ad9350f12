import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { join } from 'node:path';
import { openLog } from '../logs.ts';
import { logFileOf, type Places } from '../places.ts';
import { createProgress, stackReport } from '../report.ts';
import { readStackFile } from '../stack-file.ts';
import { endStack, findSupervisor } from '../supervisor.ts';
import { alreadyRunning, supervise } from './start.ts';

/** What the detached supervisor tells the command that started it. */
type Message = { say: string } | { ready: true } | { failed: string };

/** The detached supervisor; everything it says goes to its log, and to `up` while that listens. */
export async function superviseDetached(places: Places): Promise<number> {
  const tell = (message: Message) => {
    // `up` may be gone: a channel that closes meanwhile is not a fault of the stack.
    if (process.connected) process.send?.(message, undefined, undefined, () => {});
  };
  const log = (line: string) => console.log(`${new Date().toISOString()} ${line}`);
  try {
    const say = (line: string) => {
      log(line);
      tell({ say: line });
    };
    const didRun = await supervise(places, { say, onReady: () => tell({ ready: true }) });
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

/** `npm run up`: starts the supervisor as a process of its own and returns when the round trip has been proven. */
export async function up(places: Places): Promise<number> {
  if (findSupervisor(places) !== null) {
    console.log(alreadyRunning(places));
    return 0;
  }
  const logFile = logFileOf(places, 'supervisor');
  const log = openLog(logFile);
  const child = spawn(process.execPath, [join(import.meta.dirname, '..', 'main.ts'), 'supervise'], {
    cwd: places.checkout,
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  const interrupt = () => void endStack(places).then(() => process.exit(130));
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const say = createProgress((line) => console.log(line));
  const failure = await new Promise<string | null>((done) => {
    child.on('message', (message: Message) => {
      if ('say' in message) say(message.say);
      else done('failed' in message ? message.failed : null);
    });
    child.once('exit', (code, signal) => done(`the supervisor ended (${signal ?? code}); see ${logFile}`));
  });
  if (failure !== null) {
    console.error(failure);
    return 1;
  }
  child.disconnect();
  child.unref();
  const file = readStackFile(places);
  if (file !== null) console.log(`${stackReport(places, file)}\n  npm run down drains and stops all of it.\n`);
  return 0;
}
