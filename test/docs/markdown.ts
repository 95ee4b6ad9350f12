import { posix } from 'node:path';
import type { Tree } from '../house/tree.ts';

export interface PageLink {
  readonly written: string;
  /** The file or folder, from the top of the repository. */
  readonly path: string;
  /** Anchor of a heading; '' for the page as a whole. */
  readonly anchor: string;
}

const withoutBlocks = (text: string) => text.replace(/^```.*?^```/gms, '');

/** Links of a page to files, folders and headings of the repository. Web addresses are left out. */
export function linksOf(page: string, tree: Tree): readonly PageLink[] {
  const text = withoutBlocks(tree.get(page) ?? '').replace(/`[^`\n]*`/g, '');
  const written = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return written
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [file = '', anchor = ''] = target.split('#');
      const path = file === '' ? page : posix.join(posix.dirname(page), file).replace(/\/$/, '');
      return { written: target, path, anchor };
    });
}

/** Anchors of a page's headings as repositories show them: lower case, `-` for spaces, no punctuation. */
export function anchorsOf(page: string, tree: Tree): readonly string[] {
  const headings = [...withoutBlocks(tree.get(page) ?? '').matchAll(/^#+ +(.*)$/gm)].map(([, heading = '']) => heading);
  return headings.map((heading) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-'),
  );
}

export function faultOf({ path, anchor }: PageLink, tree: Tree): string | null {
  const isThere = tree.has(path) || [...tree.keys()].some((file) => file.startsWith(`${path}/`));
  if (!isThere) return `there is no ${path}`;
  if (anchor === '' || !path.endsWith('.md')) return null;
  return anchorsOf(path, tree).includes(anchor) ? null : `${path} has no heading #${anchor}`;
}
