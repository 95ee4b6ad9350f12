import { posix } from 'node:path';
import type { Breach, Rule, SourceFile } from './tree.ts';

/** Imports within a package form no cycle. Imports of types are allowed in both directions. */
export const checkCircles: Rule = ({ files }) => {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const done = new Set<string>();
  return files.flatMap((file): Breach[] => {
    const circle = findCircle(file.path, { byPath, done, way: [] });
    if (circle === null) return [];
    const mend = 'move what both need into a file of its own, or import no more than the type';
    return [{ rule: 'circles', path: circle[0] ?? file.path, found: `imports itself by ${circle.join(' → ')}`, mend }];
  });
};

interface Search {
  readonly byPath: ReadonlyMap<string, SourceFile>;
  /** Files that lead to no cycle, or only to a known one. */
  readonly done: Set<string>;
  readonly way: readonly string[];
}

/** The files of a cycle that is reachable from a file; null when there is no new one. */
function findCircle(path: string, { byPath, done, way }: Search): readonly string[] | null {
  const at = way.indexOf(path);
  if (at !== -1) return way.slice(at);
  if (done.has(path)) return null;
  for (const target of targetsOf(byPath.get(path))) {
    const circle = findCircle(target, { byPath, done, way: [...way, path] });
    if (circle !== null) {
      done.add(path);
      return circle;
    }
  }
  done.add(path);
  return null;
}

function targetsOf(file: SourceFile | undefined): string[] {
  if (file === undefined) return [];
  return file.imports.flatMap(({ target, typeOnly }) =>
    target === null || typeOnly || !target.startsWith('.') ? [] : [posix.join(posix.dirname(file.path), target)],
  );
}
