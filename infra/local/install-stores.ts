import { areJarsInstalled, fetchJars } from './jars.ts';
import { findJava, type Java } from './java.ts';
import { installMissingParts } from './machine.ts';
import type { StackPaths } from './paths.ts';

/** Installs Java, Redis and the jars if missing. */
export async function installStores(paths: StackPaths, report: (line: string) => void): Promise<Java> {
  await installMissingParts(paths, report);
  if (!areJarsInstalled(paths)) {
    report('downloading Kafka and the schema registry with Maven (about 200 MB)');
    await fetchJars(paths);
  }
  const java = findJava();
  if (java === null) throw new Error('Java is not installed. Install Java 17 or newer');
  return java;
}
