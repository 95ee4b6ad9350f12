import { posix } from 'node:path';
import type { Tree } from '../house/tree.ts';

export interface PageLink {
  /** File or folder, relative to the repository root. */
  readonly path: string;
  /** Heading anchor; '' for a link to the whole page. */
  readonly anchor: string;
}

const removeCodeBlocks = (text: string) => text.replace(/^```.*?^```/gms, '');

/** Returns the links to files, folders and headings in the repository. Ignores external links. */
export function linksOf(page: string, tree: Tree): readonly PageLink[] {
  const text = removeCodeBlocks(tree.get(page) ?? '').replace(/`[^`\n]*`/g, '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [file = '', anchor = ''] = target.split('#');
      const path = file === '' ? page : posix.join(posix.dirname(page), file).replace(/\/$/, '');
      return { path, anchor };
    });
}

/** Returns the heading anchors in GitHub style: lower case, `-` for spaces, no punctuation. */
export function anchorsOf(page: string, tree: Tree): readonly string[] {
  const text = removeCodeBlocks(tree.get(page) ?? '');
  const headings = [...text.matchAll(/^#+ +(.*)$/gm)].map(([, heading = '']) => heading);
  return headings.map((heading) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}

export function findLinkError({ path, anchor }: PageLink, tree: Tree): string | null {
  const exists = tree.has(path) || [...tree.keys()].some((file) => file.startsWith(`${path}/`));
  if (!exists) return `${path} does not exist`;
  if (anchor === '' || !path.endsWith('.md')) return null;
  return anchorsOf(path, tree).includes(anchor) ? null : `${path} has no heading #${anchor}`;
}
