import type { Example } from './operation.ts';
import type { DocsSource } from './source.ts';

// What a reader fills in is written as collections write their variables, in camel case: `{{publishableKey}}`.

/** Stands for the reader's own key of a kind. */
export const placeholderOf = (kind: string): string => `{{${kind}Key}}`;

/** Stands for a cursor from the previous answer. */
export const CURSOR_OF = { next: '{{nextCursor}}', previous: '{{previousCursor}}' } as const;

const PLACEHOLDER = /\{\{(\w+)\}\}/g;

/** True for a text that is one placeholder and nothing else. */
export const isPlaceholder = (text: string): boolean => /^\{\{\w+\}\}$/.test(text);

/** Splits a text at its placeholders: text, name of a placeholder, text, and so on. */
export const splitAtPlaceholders = (text: string): string[] => text.split(PLACEHOLDER);

/** The shell variable for a placeholder: `$PUBLISHABLE_KEY`. */
export const toShellVariable = (placeholder: string): string =>
  `$${placeholder
    .replaceAll(/[{}]/g, '')
    .replaceAll(/(?=[A-Z])/g, '_')
    .toUpperCase()}`;

/** The placeholders in examples: keys in the order of the source, then cursors. */
export function placeholdersIn({ keys }: Pick<DocsSource, 'keys'>, examples: readonly Example[]): string[] {
  const held = new Set(
    examples.flatMap(({ request }) =>
      [request.target, ...Object.values(request.headers)].flatMap((text) => text.match(PLACEHOLDER) ?? []),
    ),
  );
  return [...keys.map(({ kind }) => placeholderOf(kind)), ...Object.values(CURSOR_OF)].filter((one) => held.has(one));
}
