export * from './catalogue.ts';
export * from './public-error.ts';
