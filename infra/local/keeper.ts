// Keeps the processes of a stack running.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Condition } from './condition.ts';
import { lastMessageOf, openLog, tailOf } from './logs.ts';
import { watchReadiness } from './readiness-watch.ts';

/** How to start, check and stop a process. */
export interface ProcessSpec {
  readonly name: string;
  readonly program: string;
  /** Arguments, or a function that is called at each start. */
  readonly args: readonly string[] | (() => readonly string[]);
  readonly env: Record<string, string | undefined>;
  /** Working directory, created if missing. */
  readonly folder: string;
  readonly logFile: string;
  /** Returns true if the process is ready. The message of an exception is the reason why it is not ready. */
  isReady(): Promise<boolean>;
  readonly readyDeadlineMs: number;
  /** Overrides for tests. The defaults are one minute. */
  readonly watch?: { readonly silenceMaxMs?: number; readonly steadyPollMs?: number };
  /** Use 'end-of-input' for a process that stops when its standard input ends. */
  readonly stopBy: 'SIGTERM' | 'end-of-input';
  /** Time after which the process is killed with SIGKILL. */
  readonly stopDeadlineMs: number;
  /** Called after the process has exited within the deadline. */
  onCleanEnd?(): void;
}

export interface ProcessExit {
  name: string;
  /** For example `exit code 1` or `signal SIGKILL`. */
  cause: string;
  /** The last log lines since the start of the process. */
  lastLines: string;
  restartInMs: number;
}

export interface KeeperEvents {
  /** Called immediately after the process has started (with its pid) or exited (with null). */
  onPid(name: string, pid: number | null): void;
  onExit(exit: ProcessExit): void;
  /** Called when a process is ready again after an exit, an `onSilence` call or a missed deadline. */
  onRecovery(name: string): void;
  /** Called once when a process has not been ready for a minute. */
  onSilence?(silence: Silence): void;
  onCondition?(condition: Condition): void;
}

export interface Silence {
  name: string;
  pid: number;
  reason: string;
}

/** The process is running but was not ready within its deadline. */
export class NotReadyError extends Error {
  override readonly name = 'NotReadyError';
  /** Reason reported by the last probe. */
  readonly reason: string;
  constructor(message: string, reason: string) {
    super(message);
    this.reason = reason;
  }
}

export interface Keeper {
  readonly name: string;
  /** @throws Error with the last log lines if the process exits before it is ready; NotReadyError at its deadline */
  whenReady(): Promise<void>;
  /** Stops the process. With `immediately`, kills the process unless it has a clean-exit handler. */
  stop(options?: { readonly immediately?: boolean }): Promise<void>;
}

/** Long enough for the system to release the sockets and locks of the dead process. */
const FIRST_RESTART_MS = 150;
const RESTART_MAX_MS = 5_000;
/** A process that has been ready for this time is restarted with the initial delay. */
const HEALTHY_MS = 5_000;
/** @param exits number of consecutive exits, from 1 */
export const restartDelayMs = (exits: number): number => Math.min(RESTART_MAX_MS, FIRST_RESTART_MS * 2 ** (exits - 1));

class SupervisedProcess implements Keeper {
  readonly name: string;
  private readonly spec: ProcessSpec;
  private readonly events: KeeperEvents;
  private readonly timerSlackMs: number | undefined;
  private readonly firstReady = Promise.withResolvers<void>();
  private child: ChildProcess | null = null;
  private exited: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private exits = 0;
  private restarts = 0;
  /** True after the first readiness or a missed deadline. From then on, the process is restarted when it exits. */
  private isStarted = false;
  private isStopping = false;
  private condition: Condition;

  constructor(spec: ProcessSpec, events: KeeperEvents, timerSlackMs?: number) {
    this.name = spec.name;
    this.spec = spec;
    this.events = events;
    this.timerSlackMs = timerSlackMs;
    const [pid, sinceAt] = [null, new Date().toISOString()];
    const healthy = { reason: null, isSilent: false, lastError: null };
    this.condition = { name: spec.name, state: 'starting', pid, sinceAt, restarts: 0, ...healthy };
    // After an earlier failure, the caller may not await this promise.
    this.firstReady.promise.catch(() => {});
    this.start();
  }

  whenReady(): Promise<void> {
    return this.firstReady.promise;
  }

  private update(changes: Partial<Condition>): void {
    const updated = { ...this.condition, ...changes };
    if (JSON.stringify(updated) === JSON.stringify(this.condition)) return;
    this.condition = updated;
    this.events.onCondition?.(updated);
  }

  private setFault(state: Condition['state'], what: string): void {
    if (this.condition.state === state && this.condition.reason === what) return;
    const at = new Date().toISOString();
    this.update({ state, reason: what, ...(state === 'starting' ? {} : { lastError: { at, what } }) });
  }

  private start(): void {
    const { spec } = this;
    mkdirSync(spec.folder, { recursive: true });
    const log = openLog(spec.logFile);
    const logStart = fstatSync(log).size;
    const child = withTimerSlack(this.timerSlackMs, () =>
      spawn(spec.program, typeof spec.args === 'function' ? spec.args() : spec.args, {
        cwd: spec.folder,
        env: spec.env,
        stdio: [spec.stopBy === 'end-of-input' ? 'pipe' : 'ignore', log, log],
        // In a separate session, so that Ctrl-C reaches only the supervisor, which stops all processes in order.
        detached: true,
      }),
    );
    closeSync(log);
    this.child = child;
    if (child.pid !== undefined) this.events.onPid(this.name, child.pid);
    const { restarts } = this;
    this.update({
      state: 'starting',
      pid: child.pid ?? null,
      sinceAt: new Date().toISOString(),
      restarts,
      reason: null,
    });
    child.stdin?.on('error', () => {}); // the process may exit before it has read its input
    this.exited = new Promise((done) => {
      let hasEnded = false;
      const end = (cause: string) => {
        if (hasEnded) return;
        hasEnded = true;
        this.child = null;
        done();
        this.events.onPid(this.name, null);
        if (!this.isStopping) this.handleExit(cause, logStart);
      };
      child.once('error', (error) => end(`cannot start: ${error.message}`));
      child.once('exit', (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`));
    });
    this.watch(child);
  }

  private handleExit(cause: string, logStart: number): void {
    clearTimeout(this.timer);
    this.exits += 1;
    const lastLines = tailOf(this.spec.logFile, logStart);
    this.update({ pid: null, isSilent: false, sinceAt: new Date().toISOString() });
    this.setFault('ended', `${cause}: ${lastMessageOf(this.spec.logFile, logStart)}`);
    if (!this.isStarted) {
      // A process that was never ready fails the start, because a restart would not help.
      this.firstReady.reject(new Error(`${this.name} exited before it was ready (${cause})${formatLines(lastLines)}`));
      return;
    }
    const restartInMs = restartDelayMs(this.exits);
    this.timer = setTimeout(() => {
      this.restarts += 1;
      this.start();
    }, restartInMs);
    this.events.onExit({ name: this.name, cause, lastLines, restartInMs });
  }

  private watch(child: ChildProcess): void {
    const { spec, events, name } = this;
    const deadline = performance.now() + spec.readyDeadlineMs;
    let isRecovery = this.isStarted;
    let isStarting = true;
    void watchReadiness(
      {
        isReady: () => spec.isReady(),
        isCurrent: () => this.child === child && !this.isStopping,
        onReady: () => {
          this.update({ state: 'serving', reason: null, isSilent: false });
          if (isRecovery) events.onRecovery(name);
          [isRecovery, isStarting, this.isStarted] = [false, false, true];
          this.firstReady.resolve();
          clearTimeout(this.timer);
          this.timer = setTimeout(() => {
            this.exits = 0;
          }, HEALTHY_MS).unref();
        },
        onFault: (reason) => {
          if (!this.isStarted && performance.now() > deadline) {
            // The missed deadline is reported, so a later recovery is reported as well.
            [isRecovery, isStarting, this.isStarted] = [true, false, true];
            this.firstReady.reject(this.notReady(reason));
          }
          this.setFault(isStarting ? 'starting' : 'not serving', reason);
        },
        onSilence: (reason) => {
          [isRecovery, isStarting] = [true, false];
          this.setFault('not serving', reason);
          this.update({ isSilent: true });
          events.onSilence?.({ name, pid: child.pid ?? 0, reason });
        },
      },
      spec.watch,
    );
  }

  private notReady(reason: string): NotReadyError {
    const message = `${this.name} was not ready within ${this.spec.readyDeadlineMs / 1000} s`;
    return new NotReadyError(message + formatLines(tailOf(this.spec.logFile)), reason);
  }

  async stop({ immediately = false }: { readonly immediately?: boolean } = {}): Promise<void> {
    this.isStopping = true;
    clearTimeout(this.timer);
    this.update({ state: 'stopped', reason: null });
    this.firstReady.reject(new Error(`${this.name} was stopped`));
    const { child } = this;
    if (child === null) return;
    if (immediately && this.spec.onCleanEnd === undefined) child.kill('SIGKILL');
    else if (this.spec.stopBy === 'end-of-input') child.stdin?.end();
    else child.kill('SIGTERM');
    // A paused process handles SIGTERM only after it has been resumed.
    child.kill('SIGCONT');
    let isClean = true;
    const kill = setTimeout(() => {
      isClean = false;
      child.kill('SIGKILL');
    }, this.spec.stopDeadlineMs);
    await this.exited;
    clearTimeout(kill);
    if (isClean) this.spec.onCleanEnd?.();
  }
}

const formatLines = (lines: string): string =>
  lines === '' ? '; its log is empty' : `; last log lines:\n${lines.replace(/^/gm, '    ')}`;

/** Starts a process and restarts it when it exits. @param timerSlackMs how late timers may fire; default: unchanged */
export const keepRunning = (spec: ProcessSpec, events: KeeperEvents, timerSlackMs?: number): Keeper =>
  new SupervisedProcess(spec, events, timerSlackMs);

/** The timer slack of the main thread (`man 5 proc_pid_timerslack_ns`). */
const SLACK_FILE = '/proc/self/timerslack_ns';
const NS_PER_MS = 1_000_000;

/** Sets the main thread's timer slack during `start`, because a process inherits it from the thread. Linux only. */
function withTimerSlack<T>(slackMs: number | undefined, start: () => T): T {
  const previous = slackMs === undefined ? null : changeSlack(slackMs * NS_PER_MS);
  try {
    return start();
  } finally {
    if (previous !== null) changeSlack(previous);
  }
}

/** @returns the previous value in ns, or null if the system does not support timer slack */
function changeSlack(ns: number): number | null {
  try {
    const previous = Number(readFileSync(SLACK_FILE, 'utf8'));
    writeFileSync(SLACK_FILE, String(ns));
    return previous;
  } catch {
    return null;
  }
}
