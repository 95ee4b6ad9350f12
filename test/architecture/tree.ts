import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The repository as text: path from the top, with `/` between its parts, to the file's text. */
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

/** A rule is a function over the whole tree, so that a test can plant a breach in memory. */
export type Rule = (sources: Sources) => Breach[];

/** What the rules look at: every file as text, and every code file as a syntax tree. */
export interface Sources {
  readonly tree: Tree;
  readonly files: readonly SourceFile[];
}

/** A code file with the parts that rules ask for. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly imports: readonly Import[];
  readonly functions: readonly FunctionPart[];
  readonly nodes: readonly Node[];
}

/** `import`, `export … from` and `import()`; `target` is null when it is not written as a literal. */
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
  /** Given straight to a call: how many parameters it has is for that call to say. */
  readonly callback: boolean;
  /** Holds tests, so it is a table of contents and not a function to read at once. */
  readonly suite: boolean;
}

/** A node of the ESTree form with TypeScript's nodes among them. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** Files that Git tracks or would track; binary files are left out. */
export function readTree(root: string): Tree {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    // A listing of a hundred thousand paths fits.
    maxBuffer: 16 * 1024 * 1024,
  });
  const paths = listed.split('\0').filter((path) => path !== '' && existsSync(join(root, path)));
  const texts = paths.map((path) => [path, readFileSync(join(root, path), 'utf8')] as const);
  return new Map(texts.filter(([, text]) => !text.includes('\0')));
}
