export * from './answers.ts';
export * from './documents.ts';
export * from './examples.ts';
export { toCommand, toSizeText } from './formats/text.ts';
export * from './operation.ts';
export { type HtmlValue, html, type Markup } from './pages/html.ts';
export { CURSOR_OF, placeholderOf, toShellVariable } from './placeholders.ts';
export * from './routes.ts';
export * from './source.ts';
