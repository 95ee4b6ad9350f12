import { isNode, nameOf, nodesIn } from './syntax.ts';
import type { Breach, Node, Rule, SourceFile } from './tree.ts';
import { placeOf } from './zones.ts';

/** Names of instants: what leaves the process, or stays when it ends. */
const INSTANT = /(^at|At)(Ms)?$|^timestampMs$/;
/** The one name under which the wall clock itself is handed on. */
const CLOCK = /^wallClockMs$/;
/** Through these a value passes as it is. */
const TRANSPARENT = new Set([
  'ParenthesizedExpression',
  'LogicalExpression',
  'ConditionalExpression',
  'TSAsExpression',
]);
const TEXTS = new Set(['toISOString', 'toUTCString', 'toJSON']);

/**
 * Ages, deadlines and waits are measured by `performance.now()`: the wall clock is set back and forth, and then an ended
 * key lives on or nobody's time-out comes. It stays right for instants, which are told by their names: `Date.now()` may
 * become something called `…At`, `…AtMs` or `timestampMs`, be given to a function, or be handed on as `wallClockMs`; `new Date()` may be
 * turned into text. Arithmetic and comparisons with either are durations.
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

/** Reads of the wall clock that a node takes for instants. */
function instantsIn(node: Node): Node[] {
  if (node.type === 'CallExpression' || node.type === 'NewExpression')
    return nodesIn(node.arguments).flatMap(readsIn).filter(isCall);
  if (node.type === 'MemberExpression' && TEXTS.has(nameOf(node.property))) return readsIn(node.object);
  const [name, value] = namedValue(node);
  return readsIn(value).filter((read) => (isCall(read) ? INSTANT : CLOCK).test(name));
}

/** What a node gives a name to: variables, properties, assignments, defaults of parameters. */
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
