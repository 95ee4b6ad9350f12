import { readdirSync, readFileSync } from 'node:fs';

const FOLDER = new URL('../../cookbook/', import.meta.url);

/** Reads all recipes, in the order of their files. @throws Error when a comment lacks a part */
export function readRecipes(): Recipe[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.sql'));
  return files.sort().map((file) => parseRecipe(file, readFileSync(new URL(file, FOLDER), 'utf8')));
}

/** One SQL file of the cookbook, which begins with a comment. */
export interface Recipe {
  readonly file: string;
  readonly title: string;
  /** What the query answers: paragraphs without line breaks. */
  readonly about: readonly string[];
  readonly parameters: readonly RecipeParameters[];
  readonly cost: string;
  /** With curl, then with clickhouse-client, in the folder of the files. */
  readonly commands: readonly string[];
  readonly query: string;
  readonly text: string;
}

export interface RecipeParameters {
  readonly names: readonly string[];
  readonly description: string;
}

const COMMENT = /^-- ?/;
const [CHANGE, COST, RUN] = ['Change:', 'Cost: ', 'Run:'];

/** @throws Error with the file and the missing part */
export function parseRecipe(file: string, text: string): Recipe {
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !COMMENT.test(line));
  const comment = lines.slice(0, end).map((line) => line.replace(COMMENT, ''));
  const parts = comment.join('\n').split('\n\n');
  const [title = '', ...rest] = parts;
  const partOf = (head: string) => {
    const part = rest.find((one) => one.startsWith(head));
    if (part === undefined) throw new Error(`${file}: its comment has no part that begins with ${head.trim()}`);
    return part.slice(head.length);
  };
  const linesOf = (head: string) =>
    partOf(head)
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
  return {
    file,
    title,
    about: rest.filter((part) => ![CHANGE, COST, RUN].some((head) => part.startsWith(head))).map(toOneLine),
    parameters: linesOf(CHANGE).map(toParameters),
    cost: toOneLine(partOf(COST)),
    commands: linesOf(RUN),
    query: lines.slice(end).join('\n').trim(),
    text,
  };
}

const toOneLine = (part: string): string => part.replaceAll('\n', ' ');

function toParameters(line: string): RecipeParameters {
  const [names = '', description = ''] = line.split(/ {2,}/);
  return { names: names.split(', '), description };
}
