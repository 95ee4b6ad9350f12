import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The text files of the repository. Keys are paths relative to the root, values are file contents. */
export type Tree = ReadonlyMap<string, string>;

/** Reads the files that Git tracks or would track. Binary files are returned as empty strings. */
export function readTree(root: string): Tree {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 16 * 1024 * 1024,
  });
  const paths = listed.split('\0').filter((path) => path !== '' && existsSync(join(root, path)));
  const texts = paths.map((path) => [path, readFileSync(join(root, path), 'utf8')] as const);
  return new Map(texts.map(([path, text]) => [path, text.includes('\0') ? '' : text]));
}

/** Returns the `exports` of a folder's package.json, or an empty record. */
export function exportsOf(folder: string, tree: Tree): Record<string, string> {
  const text = tree.get(`${folder}/package.json`) ?? '{}';
  return (JSON.parse(text) as { exports?: Record<string, string> }).exports ?? {};
}
