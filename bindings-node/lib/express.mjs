import rateLimit from './express.js';

export const { ipKeyGenerator } = rateLimit;
export { rateLimit };
export default rateLimit;
