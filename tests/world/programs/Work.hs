module Main where

import Control.Concurrent
import Control.Monad
import qualified Data.Map.Strict as M
import Foreign.Marshal.Alloc
import Foreign.Ptr
import Foreign.Storable
import Data.Word

-- C memory from many Haskell threads, and the collector's own mappings beside.
main :: IO ()
main = do
  boxes <- forM [1 .. 8] $ \t -> do
    box <- newEmptyMVar
    _ <- forkOS $ do
      sums <- forM [1 .. 2000] $ \i -> do
        p <- mallocBytes (i * 37 `mod` 9000 + 1) :: IO (Ptr Word8)
        poke p (fromIntegral (i * t))
        v <- peek p
        free p
        return (fromIntegral v :: Int)
      putMVar box $! sum sums
    return box
  mapM takeMVar boxes >>= print
  let m = M.fromList [(i * 7919 `mod` 100003, show i) | i <- [1 .. 150000 :: Int]]
  print (M.size m, sum (map length (M.elems m)))
