import { readdirSync, readFileSync } from 'node:fs';

const FOLDER = new URL('../../cookbook/', import.meta.url);

/** Reads all recipes in file order. @throws Error if a section is missing from a comment */
export function readRecipes(): Recipe[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.sql'));
  return files.sort().map((file) => parseRecipe(file, readFileSync(new URL(file, FOLDER), 'utf8')));
}

/** One SQL file of the cookbook, which begins with a comment. */
export interface Recipe {
  readonly file: string;
  readonly title: string;
  /** Description of the result, in paragraphs without line breaks. */
  readonly about: readonly string[];
  readonly parameters: readonly RecipeParameters[];
  readonly cost: string;
  /** The curl command and the clickhouse-client command, to be run in the cookbook folder. */
  readonly commands: readonly string[];
  readonly query: string;
  readonly text: string;
}

export interface RecipeParameters {
  readonly names: readonly string[];
  readonly description: string;
}

const COMMENT = /^-- ?/;
const [PARAMS, COST, RUN] = ['Parameters:', 'Cost: ', 'Run:'];

/** Parses a recipe. @throws Error with the file name and the missing section */
export function parseRecipe(file: string, text: string): Recipe {
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !COMMENT.test(line));
  const comment = lines.slice(0, end).map((line) => line.replace(COMMENT, ''));
  const sections = comment.join('\n').split('\n\n');
  const [title = '', ...rest] = sections;
  const readSection = (heading: string) => {
    const section = rest.find((each) => each.startsWith(heading));
    if (section === undefined) throw new Error(`${file}: add a "${heading.trim()}" section to the comment`);
    return section.slice(heading.length);
  };
  const readLines = (heading: string) =>
    readSection(heading)
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
  return {
    file,
    title,
    about: rest.filter((section) => ![PARAMS, COST, RUN].some((heading) => section.startsWith(heading))).map(toOneLine),
    parameters: readLines(PARAMS).map(toParameters),
    cost: toOneLine(readSection(COST)),
    commands: readLines(RUN),
    query: lines.slice(end).join('\n').trim(),
    text,
  };
}

const toOneLine = (section: string): string => section.replaceAll('\n', ' ');

function toParameters(line: string): RecipeParameters {
  const [names = '', description = ''] = line.split(/ {2,}/);
  return { names: names.split(', '), description };
}
