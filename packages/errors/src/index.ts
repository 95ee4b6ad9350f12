export * from './catalogue.ts';
export * from './envelope.ts';
export * from './public-error.ts';
export * from './rejections.ts';
