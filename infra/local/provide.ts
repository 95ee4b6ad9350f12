import { areJarsThere, fetchJars } from './jars.ts';
import { findJava, type Java } from './java.ts';
import { installMissingParts } from './machine.ts';
import type { StackPaths } from './paths.ts';

/**
 * Sees to everything a stack stands on: Java, Redis, the jars. Costs nothing when all is there.
 * @returns the Java to run the jars with
 */
export async function provideStores(places: StackPaths, say: (line: string) => void): Promise<Java> {
  await installMissingParts(places, say);
  if (!areJarsThere(places)) {
    say('fetching Kafka and the schema registry with Maven (about 200 MB)');
    await fetchJars(places);
  }
  const java = findJava();
  if (java === null) throw new Error('Java is not installed');
  return java;
}
