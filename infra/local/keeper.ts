// Keeps processes of a stack running.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Condition } from './condition.ts';
import { lastMessageOf, openLog, tailOf } from './logs.ts';
import { watchReadiness } from './readiness-watch.ts';

/** How to start, check and stop a process. */
export interface ProcessSpec {
  readonly name: string;
  readonly program: string;
  /** A function is called at each start. */
  readonly args: readonly string[] | (() => readonly string[]);
  readonly env: Record<string, string | undefined>;
  /** Created when absent. */
  readonly folder: string;
  readonly logFile: string;
  /** True while it serves. The message of an exception is the reason why not. */
  isReady(): Promise<boolean>;
  readonly readyDeadlineMs: number;
  /** For tests. The defaults are a minute. */
  readonly watch?: { readonly silenceMaxMs?: number; readonly calmPollMs?: number };
  /** 'end-of-input' for a process that stops when its standard input ends. */
  readonly stopBy: 'SIGTERM' | 'end-of-input';
  /** SIGKILL follows after this time. */
  readonly stopDeadlineMs: number;
  /** Called after an end within the deadline. */
  onCleanEnd?(): void;
}

export interface Death {
  name: string;
  /** `exit code 1` or `signal SIGKILL` */
  cause: string;
  /** Lines in its log since its start. */
  lastLines: string;
  restartInMs: number;
}

export interface KeeperEvents {
  /** Called before anything else can happen to the process; null while there is none. */
  onPid(name: string, pid: number | null): void;
  onDeath(death: Death): void;
  /** Ready after a death, a reported silence or its deadline. */
  onRecovery(name: string): void;
  /** Not ready for a minute. Called once until it is ready again. */
  onSilence?(silence: Silence): void;
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
  /** Of the last probe. */
  readonly reason: string;
  constructor(message: string, reason: string) {
    super(message);
    this.reason = reason;
  }
}

export interface Keeper {
  readonly name: string;
  /** @throws Error with the last lines of its log when it ends before it was ready; NotReadyError at its deadline */
  whenReady(): Promise<void>;
  /** Ends the process. `immediately`: kills it, unless it has something to do at a clean end. */
  stop(options?: { readonly immediately?: boolean }): Promise<void>;
}

/** Enough for the system to release sockets and locks of the dead process. */
const FIRST_RESTART_MS = 150;
const RESTART_MAX_MS = 5_000;
/** After this time of being ready, the next death counts as the first again. */
const HEALTHY_MS = 5_000;
/** @param deaths in a row, from 1 */
export const restartDelayMs = (deaths: number): number =>
  Math.min(RESTART_MAX_MS, FIRST_RESTART_MS * 2 ** (deaths - 1));

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
  /** It was ready once, or its deadline has passed. From then on it is restarted whenever it ends. */
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
    // The caller may never await this promise after an earlier failure.
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
        // A separate session: Ctrl-C reaches only the supervisor, which stops everything in order.
        detached: true,
      }),
    );
    closeSync(log);
    this.child = child;
    if (child.pid !== undefined) this.events.onPid(this.name, child.pid);
    const { restarts } = this;
    this.note({ state: 'starting', pid: child.pid ?? null, sinceAt: new Date().toISOString(), restarts, reason: null });
    child.stdin?.on('error', () => {}); // it may end before its input
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
      child.once('error', (error) => end(`cannot start: ${error.message}`));
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
      // A process that never served fails the start; a restart does not help.
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
            // Reported as not ready, so its readiness is reported too.
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
    const message = `${this.name} was not ready within ${this.spec.readyDeadlineMs / 1000} s`;
    return new NotReadyError(message + quoted(tailOf(this.spec.logFile)), reason);
  }

  async stop({ immediately = false }: { readonly immediately?: boolean } = {}): Promise<void> {
    this.isStopping = true;
    clearTimeout(this.timer);
    this.note({ state: 'stopped', reason: null });
    this.firstReady.reject(new Error(`${this.name} was stopped`));
    const { child } = this;
    if (child === null) return;
    if (immediately && this.spec.onCleanEnd === undefined) child.kill('SIGKILL');
    else if (this.spec.stopBy === 'end-of-input') child.stdin?.end();
    else child.kill('SIGTERM');
    // A paused process handles SIGTERM when it continues.
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

const quoted = (lines: string): string =>
  lines === '' ? '; it wrote nothing' : `; its last lines:\n${lines.replace(/^/gm, '    ')}`;

/** Starts a process and restarts it whenever it ends. @param timerSlackMs how late its timers may fire; default: the system's */
export const keepRunning = (spec: ProcessSpec, events: KeeperEvents, timerSlackMs?: number): Keeper =>
  new KeptProcess(spec, events, timerSlackMs);

/** Of the main thread (`man 5 proc_pid_timerslack_ns`). */
const FILE = '/proc/self/timerslack_ns';
const NS_PER_MS = 1_000_000;

/** A process inherits the slack of the thread that starts it, so the main thread has it for a moment. Linux only. */
function withTimerSlack<T>(slackMs: number | undefined, start: () => T): T {
  const usual = slackMs === undefined ? null : changeSlack(slackMs * NS_PER_MS);
  try {
    return start();
  } finally {
    if (usual !== null) changeSlack(usual);
  }
}

/** @returns the previous value in ns; null without such a setting */
function changeSlack(ns: number): number | null {
  try {
    const usual = Number(readFileSync(FILE, 'utf8'));
    writeFileSync(FILE, String(ns));
    return usual;
  } catch {
    return null;
  }
}
