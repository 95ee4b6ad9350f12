import { isNode, nameOf, nodesIn } from './syntax.ts';
import type { Breach, Node, Rule, SourceFile } from './tree.ts';
import { placeOf } from './zones.ts';

/** Names of points in time that leave the process or outlive it. */
const INSTANT = /(^at|At)(Ms)?$|^timestampMs$/;
/** The only name under which the wall clock may be passed as a function. */
const CLOCK = /^wallClockMs$/;
/** Types of nodes that return a value unchanged. */
const TRANSPARENT = new Set([
  'ParenthesizedExpression',
  'LogicalExpression',
  'ConditionalExpression',
  'TSAsExpression',
]);
const TEXTS = new Set(['toISOString', 'toUTCString', 'toJSON']);

/**
 * Code must measure ages, deadlines and waits by `performance.now()`. The wall clock may be set back or ahead: then an
 * expired key stays valid, or a time-out never comes. The wall clock is right for points in time, which are recognised
 * by their names. `Date.now()` may be assigned to something called `…At`, `…AtMs` or `timestampMs`, be an argument of a
 * function, or be passed as `wallClockMs`. `new Date()` may be turned into text. Arithmetic and comparisons with either
 * are durations.
 */
export const checkClocks: Rule = ({ files, tree }) =>
  files.flatMap((file) => {
    const { zone, test } = placeOf(file.path, tree);
    return test || zone === 'testkit' || zone === 'test' ? [] : breachesOf(file);
  });

function breachesOf(file: SourceFile): Breach[] {
  const instants = new Set(file.nodes.flatMap(instantsIn));
  const called = new Set(file.nodes.map((node) => (node.type === 'CallExpression' ? node.callee : null)));
  return file.nodes
    .filter((node) => isWallClock(node) && !called.has(node) && !instants.has(node))
    .map((node) => ({
      rule: 'clocks',
      path: file.path,
      found: `line ${lineOf(file, node)} measures with ${file.text.slice(node.start, node.end)}`,
      mend: 'measure by performance.now(); call an instant …At or …AtMs, and a clock that gives instants wallClockMs',
    }));
}

/** Reads of the wall clock in a node that are points in time. */
function instantsIn(node: Node): Node[] {
  if (node.type === 'CallExpression' || node.type === 'NewExpression')
    return nodesIn(node.arguments).flatMap(readsIn).filter(isCall);
  if (node.type === 'MemberExpression' && TEXTS.has(nameOf(node.property))) return readsIn(node.object);
  const [name, value] = namedValue(node);
  return readsIn(value).filter((read) => (isCall(read) ? INSTANT : CLOCK).test(name));
}

/** The name that a node gives to a value, and the value: variables, properties, assignments, defaults of parameters. */
function namedValue(node: Node): [name: string, value: unknown] {
  if (node.type === 'VariableDeclarator') return [nameOf(node.id), node.init];
  if (node.type === 'Property' || node.type === 'PropertyDefinition') return [nameOf(node.key), node.value];
  if (node.type === 'AssignmentPattern') return [nameOf(node.left), node.right];
  if (node.type !== 'AssignmentExpression' || node.operator !== '=' || !isNode(node.left)) return ['', null];
  return [nameOf(node.left.type === 'MemberExpression' ? node.left.property : node.left), node.right];
}

function readsIn(value: unknown): Node[] {
  if (!isNode(value)) return [];
  if (isWallClock(value)) return [value];
  if (!TRANSPARENT.has(value.type)) return [];
  return [value.expression, value.left, value.right, value.consequent, value.alternate].flatMap(readsIn);
}

const isCall = (node: Node) => node.type !== 'MemberExpression';

/** `Date.now()`, `Date.now` and `new Date()`. */
function isWallClock(node: Node): boolean {
  if (node.type === 'MemberExpression') return nameOf(node.object) === 'Date' && nameOf(node.property) === 'now';
  if (node.type === 'CallExpression') return isNode(node.callee) && isWallClock(node.callee);
  return node.type === 'NewExpression' && nameOf(node.callee) === 'Date' && nodesIn(node.arguments).length === 0;
}

function lineOf({ text }: SourceFile, { start }: Node): number {
  return text.slice(0, start).split('\n').length;
}
