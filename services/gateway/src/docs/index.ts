export * from './documents.ts';
export { type DocsSettings, errorPath } from './operation.ts';
