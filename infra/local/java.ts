// Finds Java, and keeps archives of loaded classes for faster starts.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findProgram } from './command.ts';
import type { StackPaths } from './paths.ts';
import { markOf } from './process-mark.ts';

/** Of Kafka 4 and the registry. */
export const JAVA_MAJOR_MIN = 17;

export interface Java {
  program: string;
  major: number;
  /** The whole output of `java -version`. */
  version: string;
}

export function parseJavaMajor(text: string): number | null {
  const [, major] = /version "(\d+)/.exec(text) ?? [];
  return major === undefined ? null : Number(major);
}

/** By program, because each query starts Java. */
const found = new Map<string, Java>();

/** The Java of JAVA_HOME, else of PATH; null when there is none that is new enough. */
export function findJava(environment: Record<string, string | undefined> = process.env): Java | null {
  const home = environment.JAVA_HOME;
  const candidates = [home ? join(home, 'bin', 'java') : null, findProgram('java', environment)];
  for (const program of candidates) {
    if (program === null || !existsSync(program)) continue;
    const known = found.get(program);
    if (known !== undefined) return known;
    const version = spawnSync(program, ['-version'], { encoding: 'utf8' }).stderr ?? '';
    const major = parseJavaMajor(version);
    if (major === null || major < JAVA_MAJOR_MIN) continue;
    found.set(program, { program, major, version });
    return { program, major, version };
  }
  return null;
}

/** Flags that make a process start from an archive of its classes, or write that archive when it ends. */
export interface ClassArchive {
  flags: string[];
  /** Stores a new archive. Call it after a clean end. */
  keep?(): void;
}

/** Removes unfinished archives, `<archive>.<process id>.new`, of processes that have ended. */
function removeAbandonedDrafts(folder: string): void {
  for (const file of readdirSync(folder)) {
    const [, pid] = /\.(\d+)\.new$/.exec(file) ?? [];
    if (pid !== undefined && (Number(pid) === process.pid || markOf(Number(pid)) === null))
      rmSync(join(folder, file), { force: true });
  }
}

/**
 * An archive halves a broker's start. The first clean stop writes it. Its name contains Java and class path, to which it is bound.
 * @param options.writes false to only use an existing archive
 */
export function classArchiveOf(
  paths: StackPaths,
  { name, java, classPath, writes = true }: { name: string; java: Java; classPath: string; writes?: boolean },
): ClassArchive {
  const bound = createHash('sha256').update(`${java.program} ${java.version} ${classPath}`).digest('hex').slice(0, 16);
  const archive = join(paths.provisions, 'java', `${name}-${bound}.jsa`);
  if (existsSync(archive))
    return {
      flags: [`-XX:SharedArchiveFile=${archive}`, '-Xshare:auto', '-Xlog:disable', '-Xlog:all=error:stderr'],
    };
  if (!writes) return { flags: [] };
  mkdirSync(dirname(archive), { recursive: true });
  const draft = `${archive}.${process.pid}.new`;
  removeAbandonedDrafts(dirname(archive));
  return {
    flags: [`-XX:ArchiveClassesAtExit=${draft}`, '-Xlog:disable', '-Xlog:all=error:stderr'],
    keep: () => {
      if (existsSync(draft)) renameSync(draft, archive);
    },
  };
}
