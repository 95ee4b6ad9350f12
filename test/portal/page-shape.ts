import { type DefaultTreeAdapterTypes, parse } from 'parse5';

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

export type Shape = ReturnType<typeof readShape>;

const ADDRESSES = new Set(['href', 'src', 'action', 'formaction', 'srcset', 'poster', 'data', 'ping', 'background']);

/** Parses a page as a browser does. Returns its elements, text and attribute values. */
export function readShape(page: string) {
  /** Tag and attribute names of each element. Sorted, because sessions with the same timestamp have no fixed order. */
  const elements: string[] = [];
  const texts: string[] = [];
  /** Values of attributes that refer to a resource. */
  const addresses: string[] = [];
  /** Values of all other attributes, which users may hear, submit or copy. */
  const values: string[] = [];
  const links: string[] = [];
  forEachNode(parse(page), (node) => {
    if (node.nodeName === '#text') texts.push((node as DefaultTreeAdapterTypes.TextNode).value);
    if (node.nodeName === '#comment') elements.push('comment');
    if (!('tagName' in node)) return;
    const names = node.attrs.map(({ name }) => name).sort();
    elements.push([node.tagName, ...names].join(' '));
    for (const { name, value } of node.attrs) {
      if (node.tagName === 'a' && name === 'href') links.push(value);
      (ADDRESSES.has(name) ? addresses : values).push(value);
    }
  });
  return { elements: elements.sort(), text: normalize(texts.join('')), addresses, links, values };
}

function forEachNode(node: Node, visit: (node: Node) => void): void {
  visit(node);
  if ('childNodes' in node) for (const child of node.childNodes) forEachNode(child, visit);
  if ('content' in node) forEachNode((node as Element & { content: Node }).content, visit);
}

/** Normalises a string as an HTML parser does: converts line breaks to \n and removes invalid characters. */
export const normalize = (text: string): string =>
  text.replace(/\r\n?/g, '\n').toWellFormed().replaceAll('\u0000', '').replaceAll('\ufffd', '');
