import { spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { openLog, tailOf } from './logs.ts';

export interface CommandOptions {
  folder: string;
  env?: Record<string, string | undefined>;
  logFile: string;
}

/** Removes URLs, because output must not contain the addresses of registries and mirrors. */
export const redactUrls = (text: string): string => text.replace(/\b(https?|ftp):\/\/[^\s'")\]]+/g, '<address>');

/** A program failed with an exit code, or was killed by a signal (exit code null). */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number | null;
  constructor(message: string, exitCode: number | null) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * Runs a program and logs its standard error.
 * @returns the program's standard output
 * @throws CommandError with the last lines of output if the exit code is not 0
 */
export function runCommand(program: string, args: readonly string[], options: CommandOptions): Promise<string> {
  const log = openLog(options.logFile);
  const logStart = fstatSync(log).size;
  return new Promise((done, fail) => {
    const child = spawn(program, args, {
      cwd: options.folder,
      env: options.env ?? process.env,
      stdio: ['ignore', 'pipe', log],
    });
    closeSync(log);
    const output: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => output.push(chunk));
    child.once('error', (error) => fail(new Error(`${program} could not be run: ${error.message}`)));
    child.once('close', (code, signal) => {
      const text = Buffer.concat(output).toString('utf8');
      if (code === 0) return done(text);
      const lines = [text.trimEnd().split('\n').slice(-15).join('\n'), tailOf(options.logFile, logStart)];
      const shown = redactUrls(lines.filter((part) => part !== '').join('\n'));
      const cause = signal ?? `exit code ${code}`;
      fail(new CommandError(`${program} failed with ${cause}:\n${shown.replace(/^/gm, '    ')}`, code));
    });
  });
}

/** Searches PATH, and folders that are often missing from the PATH of an unprivileged user. */
export function findProgram(
  name: string,
  environment: Record<string, string | undefined> = process.env,
): string | null {
  const folders = [
    ...(environment.PATH ?? '').split(delimiter),
    '/usr/local/bin',
    '/usr/bin',
    '/usr/sbin',
    '/opt/homebrew/bin',
  ];
  for (const folder of folders) {
    if (folder !== '' && existsSync(join(folder, name))) return join(folder, name);
  }
  return null;
}
