import { readFileSync } from 'node:fs';
import { html, Markup } from '@playline/api-docs';

/** Names of icons in lucide-static. */
const NAMES = [
  'activity',
  'arrow-right',
  'bell',
  'book-open',
  'box',
  'check',
  'chevron-right',
  'chevrons-up-down',
  'circle-alert',
  'circle-user',
  'coins',
  'copy',
  'download',
  'file-key',
  'folder',
  'gauge',
  'history',
  'key-round',
  'layout-grid',
  'list',
  'log-out',
  'plug',
  'scroll-text',
  'search',
  'settings',
  'ticket',
  'trash-2',
  'user-search',
  'users',
] as const;

export type IconName = (typeof NAMES)[number];

const readIcon = (name: IconName): Markup => {
  const file = new URL(import.meta.resolve(`lucide-static/icons/${name}.svg`));
  const [, shapes = ''] = /<svg[^>]*>(.*)<\/svg>/s.exec(readFileSync(file, 'utf8')) ?? [];
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${new Markup(shapes.trim())}</svg>`;
};
const ICONS = new Map(NAMES.map((name) => [name, readIcon(name)]));

/** An inline icon in the colour of the text. Screen readers ignore it. */
export const icon = (name: IconName): Markup => ICONS.get(name) ?? html``;
