import { type DefaultTreeAdapterTypes, parse } from 'parse5';

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

export type Shape = ReturnType<typeof shapeOf>;

const ADDRESSES = new Set(['href', 'src', 'action', 'formaction', 'srcset', 'poster', 'data', 'ping', 'background']);

/** The parts of a page as a browser parses it. */
export function shapeOf(page: string) {
  /** With the names of their attributes; sorted, because sessions of the same time have no order. */
  const elements: string[] = [];
  const texts: string[] = [];
  /** Values of attributes that link to something or load something. */
  const addresses: string[] = [];
  /** Values of all other attributes: what a user hears, types or copies. */
  const values: string[] = [];
  const links: string[] = [];
  forEachNode(parse(page), (node) => {
    if (node.nodeName === '#text') texts.push((node as DefaultTreeAdapterTypes.TextNode).value);
    if (node.nodeName === '#comment') elements.push('a comment');
    if (!('tagName' in node)) return;
    const names = node.attrs.map(({ name }) => name).sort();
    elements.push([node.tagName, ...names].join(' '));
    for (const { name, value } of node.attrs) {
      if (node.tagName === 'a' && name === 'href') links.push(value);
      (ADDRESSES.has(name) ? addresses : values).push(value);
    }
  });
  return { elements: elements.sort(), text: asRead(texts.join('')), addresses, links, values };
}

function forEachNode(node: Node, visit: (node: Node) => void): void {
  visit(node);
  if ('childNodes' in node) for (const child of node.childNodes) forEachNode(child, visit);
  if ('content' in node) forEachNode((node as Element & { content: Node }).content, visit);
}

/** A text as an HTML parser returns it: with one kind of line end, without characters that HTML does not allow. */
export const asRead = (text: string): string =>
  text.replace(/\r\n?/g, '\n').toWellFormed().replaceAll('\u0000', '').replaceAll('\ufffd', '');
