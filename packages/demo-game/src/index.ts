export { type DemoGameParts, type DemoLoad, loadDemoGame } from './load.ts';
