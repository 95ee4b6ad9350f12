import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { openLog, tailOf } from './logs.ts';

/** How one process of the stack is started, known to serve, and stopped. */
export interface ProcessSpec {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Record<string, string | undefined>;
  readonly folder: string;
  /** Standard output and errors, appended. */
  readonly logFile: string;
  /** True once it does its work, not merely lives. A throw counts as false. */
  isReady(): Promise<boolean>;
  readonly readyDeadlineMs: number;
  /** 'end-of-input' for the one process that stops when its standard input ends. */
  readonly stopBy: 'SIGTERM' | 'end-of-input';
  /** SIGKILL after this. */
  readonly stopDeadlineMs: number;
  /** Called when it ended by itself after `stop`. */
  onCleanEnd?(): void;
}

export interface Death {
  name: string;
  /** `exit code 1` or `signal SIGKILL` */
  how: string;
  /** Last lines it wrote to its log since it was started. */
  lastLines: string;
  restartInMs: number;
}

export interface KeeperEvents {
  /** A new process id, or null while there is no process. Called before anything else can happen to the process. */
  onPid(name: string, pid: number | null): void;
  onDeath(death: Death): void;
  /** Ready again after a death. */
  onRecovery(name: string): void;
}

/** Keeps one process alive. */
export interface Keeper {
  readonly name: string;
  /** @throws Error with the last lines of its log when it exits or its deadline passes before it is ready the first time */
  whenReady(): Promise<void>;
  /** Ends the process for good; resolves when it has ended. */
  stop(): Promise<void>;
}

/** Under the promised half second, and long enough for the dead process's sockets and locks to be released. */
const FIRST_RESTART_MS = 150;
/** A process that cannot run costs one attempt in this time, no more. */
const RESTART_MAX_MS = 5_000;
/** Ready for this long, a process has recovered: its next death is a first one again. */
const HEALTHY_MS = 5_000;
const READY_POLL_MS = 50;

/** Time to wait before the restart after the `deaths`-th death in a row (from 1). */
export function restartDelayMs(deaths: number): number {
  return Math.min(RESTART_MAX_MS, FIRST_RESTART_MS * 2 ** (deaths - 1));
}

class KeptProcess implements Keeper {
  readonly name: string;
  private readonly spec: ProcessSpec;
  private readonly events: KeeperEvents;
  private readonly firstReady = Promise.withResolvers<void>();
  private child: ChildProcess | null = null;
  private exited: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private deaths = 0;
  private wasReady = false;
  private isStopping = false;

  constructor(spec: ProcessSpec, events: KeeperEvents) {
    this.name = spec.name;
    this.spec = spec;
    this.events = events;
    // Whoever starts a stack may learn of an earlier failure first and never ask this one.
    this.firstReady.promise.catch(() => {});
    this.start();
  }

  whenReady(): Promise<void> {
    return this.firstReady.promise;
  }

  private start(): void {
    const { spec } = this;
    const log = openLog(spec.logFile);
    const logStart = fstatSync(log).size;
    const child = spawn(spec.program, spec.args, {
      cwd: spec.folder,
      env: spec.env,
      stdio: [spec.stopBy === 'end-of-input' ? 'pipe' : 'ignore', log, log],
      // A session of its own: Ctrl-C in the terminal reaches the supervisor alone, which stops things in order.
      detached: true,
    });
    closeSync(log);
    this.child = child;
    if (child.pid !== undefined) this.events.onPid(this.name, child.pid);
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
    void this.watchReadiness(child, performance.now() + spec.readyDeadlineMs);
  }

  private onExit(how: string, logStart: number): void {
    clearTimeout(this.timer);
    this.deaths += 1;
    const lastLines = tailOf(this.spec.logFile, logStart);
    if (!this.wasReady) {
      // A process that never served will not serve by being started again; the start as a whole has failed.
      this.firstReady.reject(new Error(`${this.name} ended before it was ready (${how})${quoted(lastLines)}`));
      return;
    }
    const restartInMs = restartDelayMs(this.deaths);
    this.timer = setTimeout(() => this.start(), restartInMs);
    this.events.onDeath({ name: this.name, how, lastLines, restartInMs });
  }

  /** A process that lives but does not answer is left alone: it may be slow, or stopped by somebody on purpose. */
  private async watchReadiness(child: ChildProcess, deadline: number): Promise<void> {
    while (this.child === child && !this.isStopping) {
      if (await this.spec.isReady().catch(() => false)) {
        if (this.child !== child || this.isStopping) return;
        if (this.wasReady) this.events.onRecovery(this.name);
        this.wasReady = true;
        this.firstReady.resolve();
        this.timer = setTimeout(() => {
          this.deaths = 0;
        }, HEALTHY_MS).unref();
        return;
      }
      if (!this.wasReady && performance.now() > deadline) {
        const lastLines = quoted(tailOf(this.spec.logFile));
        this.firstReady.reject(
          new Error(`${this.name} was not ready within ${this.spec.readyDeadlineMs / 1000} s${lastLines}`),
        );
        return;
      }
      await delay(READY_POLL_MS);
    }
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    clearTimeout(this.timer);
    this.firstReady.reject(new Error(`${this.name} was stopped`));
    const { child } = this;
    if (child === null) return;
    if (this.spec.stopBy === 'end-of-input') child.stdin?.end();
    else child.kill('SIGTERM');
    // A process that somebody stopped hears of SIGTERM only when it goes on.
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

/** Starts a process and starts it again whenever it exits, until `stop`. */
export function keepRunning(spec: ProcessSpec, events: KeeperEvents): Keeper {
  return new KeptProcess(spec, events);
}
