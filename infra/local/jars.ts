// The jars of Kafka and the schema registry.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, runCommand } from './command.ts';
import { logFileOf, type StackPaths } from './paths.ts';

const POM = join(import.meta.dirname, 'jars', 'pom.xml');

export const jarFolderOf = (paths: StackPaths) => ({
  kafka: join(paths.downloads, 'kafka', 'lib'),
  registry: join(paths.downloads, 'registry'),
});

function stampOf(paths: StackPaths): { path: string; text: string } {
  const text = createHash('sha256').update(readFileSync(POM)).digest('hex');
  return { path: join(paths.downloads, 'kafka', 'jars.stamp'), text };
}

export function areJarsInstalled(paths: StackPaths): boolean {
  const stamp = stampOf(paths);
  return existsSync(stamp.path) && readFileSync(stamp.path, 'utf8') === stamp.text;
}

/** Returns the class path in a deterministic order, because class archives depend on the class path. */
export function classPathOf(folder: string): string {
  const jars = readdirSync(folder).filter((file) => file.endsWith('.jar'));
  return jars
    .sort()
    .map((jar) => join(folder, jar))
    .join(':');
}

/** Downloads about 190 MB with Maven. The Maven repository is in the checkout and is removed afterwards. */
export async function fetchJars(paths: StackPaths): Promise<void> {
  const maven = findProgram('mvn');
  if (maven === null)
    throw new Error('Maven is not installed. Install it: Maven downloads the jars of Kafka and the schema registry');
  const target = join(paths.downloads, `jars.${process.pid}.new`);
  const repository = join(paths.downloads, 'maven');
  mkdirSync(target, { recursive: true });
  const flags = ['-B', '-ntp', '-q', `-Dmaven.repo.local=${repository}`, `-Dtarget=${target}`];
  await runCommand(maven, [...flags, '-f', POM, 'generate-resources'], {
    folder: paths.checkout,
    logFile: logFileOf(paths, 'maven'),
  });
  const folders = jarFolderOf(paths);
  mkdirSync(join(paths.downloads, 'kafka'), { recursive: true });
  for (const name of ['kafka', 'registry'] as const) {
    rmSync(folders[name], { recursive: true, force: true });
    renameSync(join(target, name), folders[name]);
  }
  const stamp = stampOf(paths);
  writeFileSync(stamp.path, stamp.text);
  rmSync(target, { recursive: true, force: true });
  rmSync(repository, { recursive: true, force: true });
}
