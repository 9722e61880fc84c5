package tool

import (
	"image"
	"image/draw"
	"math"
)

// shrink scales a picture to w times h pixels by the Catmull-Rom kernel, widened
// for what becomes smaller. It goes through the picture row by row: beside the
// picture and the result it holds a few rows.
func shrink(pic image.Image, w, h int) *image.RGBA {
	b := pic.Bounds()
	across, down := kernelTaps(b.Dx(), w), kernelTaps(b.Dy(), h)
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	row := image.NewRGBA(image.Rect(0, 0, b.Dx(), 1))
	most := 0
	for _, t := range down {
		most = max(most, len(t.weights))
	}
	ring := make([][]float32, most) // rows that are scaled across, by number
	for i := range ring {
		ring[i] = make([]float32, 4*w)
	}
	sum := make([]float32, 4*w)
	read := 0 // rows of the picture passed
	for y, t := range down {
		for ; read < t.first+len(t.weights); read++ {
			if read >= t.first {
				draw.Draw(row, row.Bounds(), pic, image.Pt(b.Min.X, b.Min.Y+read), draw.Src)
				scaleRow(ring[read%most], row.Pix, across)
			}
		}
		clear(sum)
		for k, weight := range t.weights {
			for i, v := range ring[(t.first+k)%most] {
				sum[i] += weight * v
			}
		}
		out := dst.Pix[y*dst.Stride:][:4*w]
		for i := 0; i < len(out); i += 4 {
			// The kernel swings over; colours must not exceed their alpha.
			alpha := min(max(sum[i+3], 0), 255)
			for c := range 3 {
				out[i+c] = uint8(min(max(sum[i+c], 0), alpha) + 0.5)
			}
			out[i+3] = uint8(alpha + 0.5)
		}
	}
	return dst
}

// taps are the pixels that make a pixel, and how much of each.
type taps struct {
	first   int
	weights []float32
}

// kernelTaps are those of each of size pixels made of from pixels.
func kernelTaps(from, size int) []taps {
	scale := float64(from) / float64(size)
	wide := max(scale, 1)
	out := make([]taps, size)
	for i := range out {
		centre := (float64(i)+0.5)*scale - 0.5
		first := max(0, int(math.Ceil(centre-2*wide)))
		last := min(from-1, int(math.Floor(centre+2*wide)))
		weights := make([]float32, last-first+1)
		total := 0.0
		for k := range weights {
			total += catmullRom(math.Abs(float64(first+k)-centre) / wide)
		}
		for k := range weights {
			weights[k] = float32(catmullRom(math.Abs(float64(first+k)-centre)/wide) / total)
		}
		out[i] = taps{first, weights}
	}
	return out
}

func catmullRom(t float64) float64 {
	switch {
	case t < 1:
		return (1.5*t-2.5)*t*t + 1
	case t < 2:
		return ((-0.5*t+2.5)*t-4)*t + 2
	}
	return 0
}

func scaleRow(dst []float32, pix []uint8, across []taps) {
	for x, t := range across {
		var r, g, b, a float32
		p := pix[4*t.first:][:4*len(t.weights)]
		for k, weight := range t.weights {
			q := p[4*k : 4*k+4 : 4*k+4]
			r += weight * float32(q[0])
			g += weight * float32(q[1])
			b += weight * float32(q[2])
			a += weight * float32(q[3])
		}
		d := dst[4*x : 4*x+4 : 4*x+4]
		d[0], d[1], d[2], d[3] = r, g, b, a
	}
}
