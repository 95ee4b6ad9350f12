import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findProgram } from './command.ts';
import type { StackPaths } from './paths.ts';
import { markOf } from './process-mark.ts';

/** Required by Kafka 4 and the registry. */
export const JAVA_MAJOR_MIN = 17;

export interface Java {
  program: string;
  major: number;
  /** The whole output of `java -version`. It changes with every update of the package. */
  version: string;
}

/** The major version from the output of `java -version`, or null. */
export function parseJavaMajor(text: string): number | null {
  const [, major] = /version "(\d+)/.exec(text) ?? [];
  return major === undefined ? null : Number(major);
}

/** The Java of JAVA_HOME, else of PATH; null when there is none or it is too old. */
export function findJava(environment: Record<string, string | undefined> = process.env): Java | null {
  const home = environment.JAVA_HOME;
  const candidates = [home ? join(home, 'bin', 'java') : null, findProgram('java', environment)];
  for (const program of candidates) {
    if (program === null || !existsSync(program)) continue;
    const version = spawnSync(program, ['-version'], { encoding: 'utf8' }).stderr ?? '';
    const major = parseJavaMajor(version);
    if (major !== null && major >= JAVA_MAJOR_MIN) return { program, major, version };
  }
  return null;
}

/** Flags that make a Java process start from an archive of its loaded classes, or write that archive when it ends. */
export interface ClassArchive {
  flags: string[];
  /** Moves a new archive into place. Call it when the process has ended by itself. Absent when it writes none. */
  keep?(): void;
}

/** Removes unfinished archives, `<archive>.<process id>.new`, of owners that have ended. */
function removeAbandonedDrafts(folder: string): void {
  for (const file of readdirSync(folder)) {
    const [, pid] = /\.(\d+)\.new$/.exec(file) ?? [];
    if (pid !== undefined && (Number(pid) === process.pid || markOf(Number(pid)) === null))
      rmSync(join(folder, file), { force: true });
  }
}

/**
 * An archive of loaded classes halves a broker's start. The first clean stop writes it; a killed process writes none.
 * It fits only this Java and this class path, so both are part of its name.
 * @param options.writes false for a process that only uses an existing archive
 */
export function classArchiveOf(
  places: StackPaths,
  { name, java, classPath, writes = true }: { name: string; java: Java; classPath: string; writes?: boolean },
): ClassArchive {
  const bound = createHash('sha256').update(`${java.program} ${java.version} ${classPath}`).digest('hex').slice(0, 16);
  const archive = join(places.provisions, 'java', `${name}-${bound}.jsa`);
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
