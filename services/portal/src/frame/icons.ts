import { readFileSync } from 'node:fs';
import { html, Markup } from '@playline/api-docs';
import type tags from 'lucide-static/tags.json';

export type IconName = keyof typeof tags;

const icons = new Map<IconName, Markup>();

/** An inline icon of lucide-static in the colour of the text. Screen readers ignore it. */
export function icon(name: IconName): Markup {
  const known = icons.get(name);
  if (known !== undefined) return known;
  const file = readFileSync(new URL(import.meta.resolve(`lucide-static/icons/${name}.svg`)), 'utf8');
  const [, shapes = ''] = /<svg[^>]*>(.*)<\/svg>/s.exec(file) ?? [];
  const markup = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${new Markup(shapes.trim())}</svg>`;
  icons.set(name, markup);
  return markup;
}
