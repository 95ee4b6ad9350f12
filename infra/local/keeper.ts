import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Condition } from './condition.ts';
import { lastMessageOf, openLog, tailOf } from './logs.ts';
import { watchReadiness } from './readiness-watch.ts';

/** How to start one process of the stack, how to tell that it serves, and how to stop it. */
export interface ProcessSpec {
  readonly name: string;
  readonly program: string;
  /** Or what gives them for each start anew. */
  readonly args: readonly string[] | (() => readonly string[]);
  readonly env: Record<string, string | undefined>;
  /** Created when absent, so that a process can start after its data was removed. */
  readonly folder: string;
  /** Gets standard output and errors, appended. */
  readonly logFile: string;
  /** True while it serves, not merely runs. An exception counts as false, and its message is the reason. */
  isReady(): Promise<boolean>;
  readonly readyDeadlineMs: number;
  /** For tests. Both are a minute by default. */
  readonly watch?: { readonly silenceMaxMs?: number; readonly calmPollMs?: number };
  /** 'end-of-input' for the one process that stops when its standard input ends. */
  readonly stopBy: 'SIGTERM' | 'end-of-input';
  /** SIGKILL follows after this time. */
  readonly stopDeadlineMs: number;
  /** Called when it has ended by itself after `stop`. */
  onCleanEnd?(): void;
}

export interface Death {
  name: string;
  /** `exit code 1` or `signal SIGKILL` */
  cause: string;
  /** The last lines in its log since it was started. */
  lastLines: string;
  restartInMs: number;
}

export interface KeeperEvents {
  /** A new process id, or null while there is no process. Called before anything else can happen to the process. */
  onPid(name: string, pid: number | null): void;
  onDeath(death: Death): void;
  /** Ready again after a death or a reported silence, or for the first time after its deadline. */
  onRecovery(name: string): void;
  /** No check has found it serving for a minute. Called once until it serves again. */
  onSilence?(silence: Silence): void;
  /** The condition of the process has changed. */
  onCondition?(condition: Condition): void;
}

export interface Silence {
  name: string;
  pid: number;
  reason: string;
}

/** The process runs, but was not ready within its deadline. */
export class NotReadyError extends Error {
  override readonly name = 'NotReadyError';
  /** The reason that its last probe gave. */
  readonly reason: string;
  constructor(message: string, reason: string) {
    super(message);
    this.reason = reason;
  }
}

export interface StopOptions {
  /** True for a process whose data nobody needs any more: it is killed, unless something is to be done at its clean end. */
  readonly immediately?: boolean;
}

/** Keeps one process alive. */
export interface Keeper {
  readonly name: string;
  /**
   * @throws Error with the last lines of its log when it ends before it was ever ready
   * @throws NotReadyError when its deadline is over first. It is still watched and restarted then
   */
  whenReady(): Promise<void>;
  /** Ends the process for good; resolves when it has ended. */
  stop(options?: StopOptions): Promise<void>;
}

/** Less than the promised half second, but enough for the system to release the dead process's sockets and locks. */
const FIRST_RESTART_MS = 150;
/** A process that cannot run is restarted at most once in this time. */
const RESTART_MAX_MS = 5_000;
/** After being ready for this long, a process counts as recovered: its next death is the first in a row again. */
const HEALTHY_MS = 5_000;
/** Time to wait before the restart after the `deaths`-th death in a row (from 1). */
export function restartDelayMs(deaths: number): number {
  return Math.min(RESTART_MAX_MS, FIRST_RESTART_MS * 2 ** (deaths - 1));
}

class KeptProcess implements Keeper {
  readonly name: string;
  private readonly spec: ProcessSpec;
  private readonly events: KeeperEvents;
  private readonly timerSlackMs: number | undefined;
  private readonly firstReady = Promise.withResolvers<void>();
  private child: ChildProcess | null = null;
  private exited: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private deaths = 0;
  private restarts = 0;
  /** It was ready once, or its deadline is over. From then on it is restarted whenever it ends. */
  private isStarted = false;
  private isStopping = false;
  private condition: Condition;

  constructor(spec: ProcessSpec, events: KeeperEvents, timerSlackMs?: number) {
    this.name = spec.name;
    this.spec = spec;
    this.events = events;
    this.timerSlackMs = timerSlackMs;
    const [pid, sinceAt] = [null, new Date().toISOString()];
    const isWell = { reason: null, isSilent: false, lastError: null };
    this.condition = { name: spec.name, state: 'starting', pid, sinceAt, restarts: 0, ...isWell };
    // The caller may see an earlier failure first and never await this promise.
    this.firstReady.promise.catch(() => {});
    this.start();
  }

  whenReady(): Promise<void> {
    return this.firstReady.promise;
  }

  private note(changes: Partial<Condition>): void {
    const noted = { ...this.condition, ...changes };
    if (JSON.stringify(noted) === JSON.stringify(this.condition)) return;
    this.condition = noted;
    this.events.onCondition?.(noted);
  }

  private noteFault(state: Condition['state'], what: string): void {
    if (this.condition.state === state && this.condition.reason === what) return;
    const at = new Date().toISOString();
    this.note({ state, reason: what, ...(state === 'starting' ? {} : { lastError: { at, what } }) });
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
        // A separate session, so that Ctrl-C in the terminal reaches only the supervisor, which stops everything in
        // order.
        detached: true,
      }),
    );
    closeSync(log);
    this.child = child;
    if (child.pid !== undefined) this.events.onPid(this.name, child.pid);
    const { restarts } = this;
    this.note({ state: 'starting', pid: child.pid ?? null, sinceAt: new Date().toISOString(), restarts, reason: null });
    child.stdin?.on('error', () => {}); // it may end before its input does
    this.exited = new Promise((done) => {
      let isOver = false;
      const end = (how: string) => {
        if (isOver) return;
        isOver = true;
        this.child = null;
        done();
        this.events.onPid(this.name, null);
        if (!this.isStopping) this.onExit(how, logStart);
      };
      child.once('error', (error) => end(`it could not be started: ${error.message}`));
      child.once('exit', (code, signal) => end(signal === null ? `exit code ${code}` : `signal ${signal}`));
    });
    this.watch(child);
  }

  private onExit(how: string, logStart: number): void {
    clearTimeout(this.timer);
    this.deaths += 1;
    const lastLines = tailOf(this.spec.logFile, logStart);
    this.note({ pid: null, isSilent: false, sinceAt: new Date().toISOString() });
    this.noteFault('ended', `${how}: ${lastMessageOf(this.spec.logFile, logStart)}`);
    if (!this.isStarted) {
      // A restart does not help a process that never served. The whole start has failed.
      this.firstReady.reject(new Error(`${this.name} ended before it was ready (${how})${quoted(lastLines)}`));
      return;
    }
    const restartInMs = restartDelayMs(this.deaths);
    this.timer = setTimeout(() => {
      this.restarts += 1;
      this.start();
    }, restartInMs);
    this.events.onDeath({ name: this.name, cause: how, lastLines, restartInMs });
  }

  private watch(child: ChildProcess): void {
    const { spec, events, name } = this;
    const deadline = performance.now() + spec.readyDeadlineMs;
    let isRecovery = this.isStarted;
    let isBeginning = true;
    void watchReadiness(
      {
        isReady: () => spec.isReady(),
        isCurrent: () => this.child === child && !this.isStopping,
        onReady: () => {
          this.note({ state: 'serving', reason: null, isSilent: false });
          if (isRecovery) events.onRecovery(name);
          [isRecovery, isBeginning, this.isStarted] = [false, false, true];
          this.firstReady.resolve();
          clearTimeout(this.timer);
          this.timer = setTimeout(() => {
            this.deaths = 0;
          }, HEALTHY_MS).unref();
        },
        onFault: (reason) => {
          if (!this.isStarted && performance.now() > deadline) {
            // It was reported as not ready, so its readiness is reported too.
            [isRecovery, isBeginning, this.isStarted] = [true, false, true];
            this.firstReady.reject(this.notReady(reason));
          }
          this.noteFault(isBeginning ? 'starting' : 'not serving', reason);
        },
        onSilence: (reason) => {
          [isRecovery, isBeginning] = [true, false];
          this.noteFault('not serving', reason);
          this.note({ isSilent: true });
          events.onSilence?.({ name, pid: child.pid ?? 0, reason });
        },
      },
      spec.watch,
    );
  }

  private notReady(reason: string): NotReadyError {
    const lastLines = quoted(tailOf(this.spec.logFile));
    const words = `${this.name} was not ready within ${this.spec.readyDeadlineMs / 1000} s${lastLines}`;
    return new NotReadyError(words, reason);
  }

  async stop({ immediately: atOnce = false }: StopOptions = {}): Promise<void> {
    this.isStopping = true;
    clearTimeout(this.timer);
    this.note({ state: 'stopped', reason: null });
    this.firstReady.reject(new Error(`${this.name} was stopped`));
    const { child } = this;
    if (child === null) return;
    if (atOnce && this.spec.onCleanEnd === undefined) child.kill('SIGKILL');
    else if (this.spec.stopBy === 'end-of-input') child.stdin?.end();
    else child.kill('SIGTERM');
    // A paused process gets SIGTERM only when it continues.
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

function quoted(lines: string): string {
  return lines === '' ? '; it wrote nothing' : `; its last lines:\n${lines.replace(/^/gm, '    ')}`;
}

/**
 * Starts a process, and restarts it whenever it ends, until `stop`.
 * @param timerSlackMs how late the timers of the process may fire; absent: as the system has it
 */
export function keepRunning(spec: ProcessSpec, events: KeeperEvents, timerSlackMs?: number): Keeper {
  return new KeptProcess(spec, events, timerSlackMs);
}

/** Of the main thread, which starts all processes (`man 5 proc_pid_timerslack_ns`). */
const FILE = '/proc/self/timerslack_ns';
const NS_PER_MS = 1_000_000;

/**
 * Starts a process whose timers may fire so much late. The system then lets several fire at one wake-up of a processor. A
 * process has the slack of the thread that starts it, and gives it to its own threads and children. So the main thread,
 * which must be the caller's, has it for a moment. On a system without the setting the process is started as usual.
 * @param slackMs undefined: as the system has it
 */
function withTimerSlack<T>(slackMs: number | undefined, start: () => T): T {
  const usual = slackMs === undefined ? null : changeSlack(slackMs * NS_PER_MS);
  try {
    return start();
  } finally {
    if (usual !== null) changeSlack(usual);
  }
}

/** @returns what it was before, in ns; null where the system has no such setting, as outside of Linux, or does not allow it */
function changeSlack(ns: number): number | null {
  try {
    const usual = Number(readFileSync(FILE, 'utf8'));
    writeFileSync(FILE, String(ns));
    return usual;
  } catch {
    return null;
  }
}
