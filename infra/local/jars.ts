import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram, runCommand } from './command.ts';
import { logFileOf, type StackPaths } from './paths.ts';

const POM = join(import.meta.dirname, 'jars', 'pom.xml');

export const jarFolderOf = (places: StackPaths) => ({
  kafka: join(places.provisions, 'kafka', 'lib'),
  registry: join(places.provisions, 'registry'),
});

function stampOf(places: StackPaths): { path: string; text: string } {
  const text = createHash('sha256').update(readFileSync(POM)).digest('hex');
  return { path: join(places.provisions, 'kafka', 'jars.stamp'), text };
}

export function areJarsThere(places: StackPaths): boolean {
  const stamp = stampOf(places);
  return existsSync(stamp.path) && readFileSync(stamp.path, 'utf8') === stamp.text;
}

/** The jars of a folder as a class path, in an order that does not depend on the file system (class archives do). */
export function classPathOf(folder: string): string {
  const jars = readdirSync(folder).filter((file) => file.endsWith('.jar'));
  return jars
    .sort()
    .map((jar) => join(folder, jar))
    .join(':');
}

/**
 * Fetches the jars of Kafka and the registry with Maven into the provisions: about 190 MB. Maven's settings of the
 * machine hold; its local repository stays in the checkout and is removed when the jars are in place.
 */
export async function fetchJars(places: StackPaths): Promise<void> {
  const maven = findProgram('mvn');
  if (maven === null) throw new Error('Maven is needed to fetch the jars of Kafka and the schema registry');
  const target = join(places.provisions, `jars.${process.pid}.new`);
  const repository = join(places.provisions, 'maven');
  mkdirSync(target, { recursive: true });
  const flags = ['-B', '-ntp', '-q', `-Dmaven.repo.local=${repository}`, `-Dtarget=${target}`];
  await runCommand(maven, [...flags, '-f', POM, 'generate-resources'], {
    folder: places.checkout,
    logFile: logFileOf(places, 'maven'),
  });
  const folders = jarFolderOf(places);
  mkdirSync(join(places.provisions, 'kafka'), { recursive: true });
  for (const name of ['kafka', 'registry'] as const) {
    rmSync(folders[name], { recursive: true, force: true });
    renameSync(join(target, name), folders[name]);
  }
  const stamp = stampOf(places);
  writeFileSync(stamp.path, stamp.text);
  rmSync(target, { recursive: true, force: true });
  rmSync(repository, { recursive: true, force: true });
}
