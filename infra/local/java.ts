// Finds Java, and stores archives of loaded classes for faster starts.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findProgram } from './command.ts';
import type { StackPaths } from './paths.ts';
import { markOf } from './process-mark.ts';

/** The minimum version for Kafka 4 and the schema registry. */
export const JAVA_MAJOR_MIN = 17;

export interface Java {
  program: string;
  major: number;
  /** The complete output of `java -version`. */
  version: string;
}

export function parseJavaMajor(text: string): number | null {
  const [, major] = /version "(\d+)/.exec(text) ?? [];
  return major === undefined ? null : Number(major);
}

/** Java versions by program, cached because each query starts a JVM. */
const cache = new Map<string, Java>();

/** Finds Java in JAVA_HOME, then in PATH. @returns null if no version is new enough */
export function findJava(environment: Record<string, string | undefined> = process.env): Java | null {
  const home = environment.JAVA_HOME;
  const candidates = [home ? join(home, 'bin', 'java') : null, findProgram('java', environment)];
  for (const program of candidates) {
    if (program === null || !existsSync(program)) continue;
    const cached = cache.get(program);
    if (cached !== undefined) return cached;
    const version = spawnSync(program, ['-version'], { encoding: 'utf8' }).stderr ?? '';
    const major = parseJavaMajor(version);
    if (major === null || major < JAVA_MAJOR_MIN) continue;
    cache.set(program, { program, major, version });
    return { program, major, version };
  }
  return null;
}

/** JVM flags for starting from a class archive, or for writing the archive at exit. */
export interface ClassArchive {
  flags: string[];
  /** Stores a new archive. Must be called after a clean exit. */
  keep?(): void;
}

/** Removes the unfinished archives (`<archive>.<process id>.new`) of dead processes. */
function removeAbandonedArchives(folder: string): void {
  for (const file of readdirSync(folder)) {
    const [, pid] = /\.(\d+)\.new$/.exec(file) ?? [];
    if (pid !== undefined && (Number(pid) === process.pid || markOf(Number(pid)) === null))
      rmSync(join(folder, file), { force: true });
  }
}

/**
 * Returns flags for a class archive, which halves the start time of a broker. The first clean stop writes the archive.
 * Its name contains a hash of Java and the class path, because the archive is valid only for that combination.
 * @param options.canWrite false to only use an existing archive
 */
export function classArchiveOf(
  paths: StackPaths,
  { name, java, classPath, canWrite = true }: { name: string; java: Java; classPath: string; canWrite?: boolean },
): ClassArchive {
  const hash = createHash('sha256').update(`${java.program} ${java.version} ${classPath}`).digest('hex').slice(0, 16);
  const archive = join(paths.downloads, 'java', `${name}-${hash}.jsa`);
  if (existsSync(archive))
    return {
      flags: [`-XX:SharedArchiveFile=${archive}`, '-Xshare:auto', '-Xlog:disable', '-Xlog:all=error:stderr'],
    };
  if (!canWrite) return { flags: [] };
  mkdirSync(dirname(archive), { recursive: true });
  const temporaryPath = `${archive}.${process.pid}.new`;
  removeAbandonedArchives(dirname(archive));
  return {
    flags: [`-XX:ArchiveClassesAtExit=${temporaryPath}`, '-Xlog:disable', '-Xlog:all=error:stderr'],
    keep: () => {
      if (existsSync(temporaryPath)) renameSync(temporaryPath, archive);
    },
  };
}
