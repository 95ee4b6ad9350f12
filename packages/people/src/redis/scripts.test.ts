import { type Chunk, type Identifier, type LocalStatement, type Node, parse } from 'luaparse';
import { describe, expect, it } from 'vitest';
import { SCRIPT_TEXTS } from './scripts.ts';

const PROVIDED_GLOBALS = 'ARGV KEYS bit ipairs math pairs redis string struct table tonumber unpack'.split(' ');
/** Parses a script. `uses` counts the occurrences of each name. */
function readScript(text: string): { uses: Map<string, number>; locals: Set<string>; globals: string[] } {
  const uses = new Map<string, number>();
  const locals = new Set<string>();
  const onCreateNode = (node: Node) => {
    if (node.type === 'Identifier') uses.set(node.name, (uses.get(node.name) ?? 0) + 1);
    if (node.type === 'LocalStatement')
      for (const { name } of (node as LocalStatement).variables as Identifier[]) locals.add(name);
    if (node.type === 'FunctionDeclaration' && node.isLocal) locals.add((node.identifier as Identifier).name);
  };
  const chunk: Chunk & { globals?: Identifier[] } = parse(text, { luaVersion: '5.1', scope: true, onCreateNode });
  const globals = chunk.globals ?? [];
  return { uses, locals, globals: [...new Set(globals.map(({ name }) => name))] };
}

describe.each(Object.entries(SCRIPT_TEXTS))('the script %s', (_name, text) => {
  it('the script uses only local names and globals that Redis provides', () => {
    const { globals } = readScript(text);
    expect(globals.filter((name) => !PROVIDED_GLOBALS.includes(name))).toEqual([]);
  });

  it("the script stays below Lua's limit on local variables", () => {
    // Lua 5.1 allows 200 local variables per function.
    const top = parse(text, { luaVersion: '5.1' }).body;
    const names = top.flatMap((node) => (node.type === 'LocalStatement' ? node.variables : []));
    const functions = top.filter((node) => node.type === 'FunctionDeclaration');
    expect(names.length + functions.length).toBeLessThan(150);
  });
});

it('the scripts use every declared name', () => {
  const scripts = Object.values(SCRIPT_TEXTS).map(readScript);
  const declared = new Set(scripts.flatMap(({ locals }) => [...locals]));
  const unused = [...declared].filter(
    (name) => name !== '_' && scripts.every(({ uses }) => (uses.get(name) ?? 1) === 1),
  );
  expect(unused).toEqual([]);
});
