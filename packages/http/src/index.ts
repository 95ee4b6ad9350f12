export * from './app.ts';
export * from './bytes-in-flight.ts';
export { Deadlines } from './deadlines.ts';
export * from './exchange.ts';
export * from './read-body.ts';
export * from './server.ts';
export * from './trace.ts';
