export * from './documents.ts';
export { toCommand, toSizeText } from './formats/text.ts';
export * from './operation.ts';
export { type HtmlValue, html, Markup, toCodeSpans } from './pages/html.ts';
export { toCodeBlock, toMarkdownMarkup, toTable } from './pages/markdown.ts';
export * from './responses.ts';
export * from './source.ts';
export { CURSOR_PLACEHOLDERS, placeholderOf, toShellVariable } from './values.ts';
