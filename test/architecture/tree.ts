import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The repository as text. Keys are paths from the top with `/`, values are file contents. */
export type Tree = ReadonlyMap<string, string>;

/** One breach of a rule, and what to do about it. */
export interface Breach {
  /** Name of the rule, as `RULES` lists it. */
  rule: string;
  path: string;
  /** What is wrong here. */
  found: string;
  /** How to mend it. */
  mend: string;
}

/** A rule is a function of the whole tree, so that a test can add a breach in memory. */
export type Rule = (sources: Sources) => Breach[];

/** What the rules look at: every file as text, and every code file as a syntax tree. */
export interface Sources {
  readonly tree: Tree;
  readonly files: readonly SourceFile[];
}

/** A code file with the parts that rules need. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
  readonly functions: readonly FunctionPart[];
  readonly nodes: readonly Node[];
}

/** `import`, `export … from` and `import()`. `target` is null when it is not a literal. */
export interface Import {
  readonly target: string | null;
  readonly typeOnly: boolean;
  readonly line: number;
}

/** A function of any form. */
export interface FunctionPart {
  readonly node: Node;
  readonly name: string;
  readonly exported: boolean;
  readonly line: number;
  readonly lines: number;
  readonly parameters: number;
  /** True when the function is an argument of a call. The call then determines the number of its parameters. */
  readonly callback: boolean;
  /** True when the function contains tests. It is then a list and may be longer than a function to read at once. */
  readonly suite: boolean;
}

/** A node of the ESTree format, including TypeScript's nodes. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** Reads the files that Git tracks or would track, except for binary files. */
export function readTree(root: string): Tree {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    // Enough for a listing of a hundred thousand paths.
    maxBuffer: 16 * 1024 * 1024,
  });
  const paths = listed.split('\0').filter((path) => path !== '' && existsSync(join(root, path)));
  const texts = paths.map((path) => [path, readFileSync(join(root, path), 'utf8')] as const);
  return new Map(texts.filter(([, text]) => !text.includes('\0')));
}
