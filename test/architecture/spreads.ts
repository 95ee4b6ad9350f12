import { isNode, nameOf, nodesIn } from './syntax.ts';
import type { Breach, Node, Rule, SourceFile } from './tree.ts';
import { placeOf } from './zones.ts';

const CALLS = new Set(['CallExpression', 'NewExpression']);
/** A list that is written in the code, and so has a fixed length. */
const CONSTANT = /^[A-Z][A-Z0-9_]*$/;

/**
 * An engine takes some 125,000 arguments of a call, so a call with a spread list of rows fails for a large customer, or
 * for whoever wants it to. Only lists of known length may be spread into a call: a rest parameter, a constant, and an
 * array literal without a spread. Rows are added one by one, and clients of Redis take an array.
 */
export const checkSpreads: Rule = ({ files, tree }) =>
  files.flatMap((file) => {
    const { zone, test } = placeOf(file.path, tree);
    return test || zone === 'testkit' || zone === 'test' ? [] : breachesOf(file);
  });

/** A spread of an object literal only packs lines: its members can be written directly. */
export const checkPacking: Rule = ({ files }) =>
  files.flatMap((file) =>
    file.nodes
      .filter(({ type }) => type === 'ObjectExpression')
      .flatMap((object) => nodesIn(object.properties))
      .filter((member) => member.type === 'SpreadElement' && isNode(member.argument) && isLiteral(member.argument))
      .map((spread) => ({
        rule: 'packing',
        path: file.path,
        found: `line ${lineOf(file, spread)} spreads an object literal into another`,
        mend: 'write its members directly',
      })),
  );

const isLiteral = ({ type }: Node) => type === 'ObjectExpression';

function breachesOf(file: SourceFile): Breach[] {
  const spreads = file.nodes
    .filter(({ type }) => CALLS.has(type))
    .flatMap((call) => nodesIn(call.arguments).filter(({ type }) => type === 'SpreadElement'));
  return spreads
    .filter((spread) => !isBounded(file, spread))
    .map((spread) => ({
      rule: 'spreads',
      path: file.path,
      found: `line ${lineOf(file, spread)} spreads ${file.text.slice(spread.start + 3, spread.end)} into a call`,
      mend: 'add rows in a loop, use reduce for an extreme, or pass the list as one argument',
    }));
}

function isBounded(file: SourceFile, spread: Node): boolean {
  const list = spread.argument;
  if (!isNode(list)) return false;
  if (list.type === 'ArrayExpression') return nodesIn(list.elements).every(({ type }) => type !== 'SpreadElement');
  if (list.type !== 'Identifier') return false;
  return CONSTANT.test(nameOf(list)) || isRestParameter(file, list);
}

function isRestParameter({ functions }: SourceFile, name: Node): boolean {
  return functions.some(
    ({ node }) =>
      node.start <= name.start &&
      name.end <= node.end &&
      nodesIn(node.params).some((param) => param.type === 'RestElement' && nameOf(param.argument) === nameOf(name)),
  );
}

function lineOf({ text }: SourceFile, { start }: Node): number {
  return text.slice(0, start).split('\n').length;
}
