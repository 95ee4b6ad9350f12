import { isNode, nameOf, nodesIn } from './syntax.ts';
import type { Breach, FunctionPart, Node, Rule, Sources } from './tree.ts';

const CATCH_ALLS = ['util', 'utils', 'helper', 'helpers', 'common', 'shared', 'misc'];
const KEBAB = /^[a-z0-9]+(-[a-z0-9]+)*$/;
/** Names that tools prescribe. */
const PRESCRIBED = new Set(['README.md', 'CHANGELOG.md', 'LICENSE', 'Dockerfile', 'Dockerfile.dockerignore']);

/** Names of folders and files are in kebab case, and none is a catch-all like `utils`. */
export const checkFileNames: Rule = ({ tree }) =>
  [...tree.keys()].flatMap((path) => {
    const breach = (found: string, mend: string): Breach => ({ rule: 'file names', path, found, mend });
    const parts = path.split('/');
    const file = parts.at(-1) ?? '';
    return parts.flatMap((part) => {
      if (part.startsWith('.') || PRESCRIBED.has(part)) return [];
      const stems = part === file ? part.split('.') : [part];
      const [stem = ''] = stems;
      if (CATCH_ALLS.includes(stem.split('-').at(-1) ?? ''))
        return [breach(`${part} names no subject`, 'name it after the noun or the flow that it serves')];
      if (!stems.every((word) => KEBAB.test(word)))
        return [breach(`${part} is not in kebab case`, 'use lower-case words with hyphens between')];
      return [];
    });
  });

/** Finds the members of a return type: one that is written out, or an interface of the tree. */
type MembersOf = (type: Node) => Set<string> | null;

/**
 * Verbs in names must keep their meaning: what `open` returns has a close, what `create` returns has none, `is` is a
 * type guard or boolean, `parse` returns a type.
 */
export const checkVerbs: Rule = (sources) => {
  const membersOf = createMembersOf(sources);
  return sources.files.flatMap(({ path, functions }) =>
    functions
      .filter((part) => part.exported)
      .flatMap((part) => mendOfVerb(part, membersOf).map(([found, mend]) => ({ rule: 'verbs', path, found, mend }))),
  );
};

function mendOfVerb(part: FunctionPart, membersOf: MembersOf): [string, string][] {
  const { name, node } = part;
  const type = returnTypeOf(node);
  if (type === null) return [];
  const verb = /^(open|create|parse|is|to|from)(?=[A-Z])/.exec(name)?.[1] ?? '';
  const guard = type.type === 'TSTypePredicate' && type.asserts !== true;
  const closes = membersOf(type)?.has('close') ?? null;
  if (guard && verb !== 'is') return [[`${name} is a type guard`, 'call a guard isX']];
  if (verb === 'is' && !guard && type.type !== 'TSBooleanKeyword')
    return [[`${name} is no guard`, 'isX answers true or false; use another verb']];
  if (verb === 'open' && closes === false)
    return [
      [
        `${name} returns nothing with close()`,
        'openX returns something with close(); a function from a factory is createX',
      ],
    ];
  if (verb === 'create' && closes === true)
    return [[`${name} returns something with close()`, 'what must be closed is opened: call it openX']];
  const vague = ['TSUnknownKeyword', 'TSVoidKeyword', ...(verb === 'parse' ? ['TSBooleanKeyword'] : [])];
  if (['parse', 'to', 'from'].includes(verb) && vague.includes(type.type))
    return [[`${name} returns no typed value`, 'parseX, toX and fromX return what they made']];
  return [];
}

/** The annotated return type, without the promise around it. */
function returnTypeOf(node: Node): Node | null {
  const annotation = node.returnType;
  if (!isNode(annotation) || !isNode(annotation.typeAnnotation)) return null;
  const type = annotation.typeAnnotation;
  const inner =
    type.type === 'TSTypeReference' && nameOf(type.typeName) === 'Promise' && isNode(type.typeArguments)
      ? nodesIn(type.typeArguments.params)[0]
      : type;
  return inner ?? null;
}

/** Finds interfaces by name. An interface that extends another one, or whose name is not unique, is not judged. */
function createMembersOf({ files }: Sources): MembersOf {
  const interfaces = new Map<string, Set<string> | null>();
  for (const node of files.flatMap((file) => file.nodes)) {
    if (node.type !== 'TSInterfaceDeclaration' || !isNode(node.body)) continue;
    const name = nameOf(node.id);
    const plain = nodesIn(node.extends).length === 0 && !interfaces.has(name);
    interfaces.set(name, plain ? memberNames(node.body.body) : null);
  }
  return (type) => {
    if (type.type === 'TSTypeLiteral') return memberNames(type.members);
    if (type.type === 'TSFunctionType') return new Set();
    return type.type === 'TSTypeReference' ? (interfaces.get(nameOf(type.typeName)) ?? null) : null;
  };
}

function memberNames(members: unknown): Set<string> {
  return new Set(nodesIn(members).map((member) => nameOf(member.key)));
}
